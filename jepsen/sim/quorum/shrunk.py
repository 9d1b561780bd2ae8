"""`./dev sim --profile quorum --shrink`: runs a seed, and if it fails, searches for the smallest plan that does."""

from __future__ import annotations

from jepsen.sim.quorum.plan import Cuts, QuorumPlan
from jepsen.sim.quorum.run import START_NS, run_quorum
from jepsen.sim.quorum.shrink import Case, Failure, Say, Shrinker, Size
from jepsen.sim.result import Result
from jepsen.sim.time.scheduler import NS_PER_S


def shrink(seed: int, seconds: int, cuts: Cuts, say: Say = print) -> str:
    """The command that replays the smallest failing plan that was found; "" if the seed does not fail."""
    results: list[Result] = []

    def attempt(case: Case) -> Failure:
        result = run_quorum(seed, seconds=case.seconds, cuts=case.cuts)
        results.append(result)
        if not result.findings:
            return Failure("")
        first = result.findings[0]
        return Failure(first.name, -1.0 if first.at_ns < 0 else max(0.0, (first.at_ns - START_NS) / NS_PER_S))

    case = Case(seconds=seconds, cuts=cuts)
    failure = attempt(case)
    if not failure.name:
        return ""
    plan = results[0].plan
    assert isinstance(plan, QuorumPlan)
    say(f"seed {seed}: {results[0].findings[0]}")
    shrinker = Shrinker(attempt, case, failure, _size(plan), say)
    found = shrinker.run()
    say(f"  after {shrinker.tries} tries; strikes that are left:")
    numbers = found.cuts.blows
    for blow in plan.blows:
        if (numbers is None or blow.number in numbers) and blow.at_ms < found.seconds * 1_000:
            say(f"    {blow}")
    return f"./dev sim --seed {seed} --profile quorum --seconds {found.seconds}{found.cuts.options}"


def _size(plan: QuorumPlan) -> Size:
    return Size(
        blows=tuple(blow.number for blow in plan.blows),
        operations=plan.operations,
        voters=plan.layout.voters,
        brokers=len(plan.layout.serving),
    )
