"""`./dev sim --shrink`: runs a seed, and if it fails, searches for the smallest run that fails in the same way."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from jepsen.pool.runner import Runner
from jepsen.sim.blow import Blow
from jepsen.sim.job import QUORUM, Job
from jepsen.sim.profiles.plan import Plan
from jepsen.sim.quorum.plan import drawn
from jepsen.sim.shrink.options import replay
from jepsen.sim.shrink.shrinker import Axis, Case, Failure, Halves, Number, Parts, Say, Shrinker
from jepsen.sim.time.scheduler import NS_PER_S, Scheduler

_TEXT_CHARACTERS = 300  # of the evidence

Told = Mapping[str, Any]  # what one simulation tells, as `jepsen sim --json`


def shrink_in_children(job: Job, say: Say = print) -> str:
    """Each run has a process of its own: one that raises or does not end is another failure, and ends nothing else."""
    with closing(Runner(None, False, os.environ)) as runner:
        return shrink(job, runner.run, say)


def shrink(job: Job, run: Callable[[Job], Told], say: Say = print) -> str:
    """The command that replays the smallest failing run that was found; "" if the seed does not fail."""
    results: dict[Case, Told] = {}

    def attempt(case: Case) -> Failure:
        result = results[case] = run(replace(job, seconds=case.seconds, cuts=case.cuts))
        return failure_of(result, case.seconds)

    whole = Case(seconds=job.seconds, cuts=job.cuts)
    failure = attempt(whole)
    if not failure.name:
        return ""
    say(f"seed {job.seed}: {_told(results[whole])}")
    shrinker = Shrinker(attempt, whole, failure, say)
    found = shrinker.run(_axes(job, _blows(results[whole])))
    say(f"  after {shrinker.tries} tries: {_told(results[found])}")
    say(f"  trace {results[found]['trace']}; strikes that are left:")
    for blow in _blows(results[found]):
        say(f"    {blow}")
    return replay(job.seed, job.profile, found.seconds, found.cuts.options)


def failure_of(result: Told, seconds: int) -> Failure:
    """seconds: that were asked for. A cluster with more brokers has fewer (`Layout.seconds`)."""
    if not result["findings"]:
        return Failure("")
    first = result["findings"][0]
    if first["at_ns"] < 0:
        return Failure(first["name"])
    if result["began_ns"] < 0:
        return Failure(first["name"], 0.0)
    after_s = (first["at_ns"] - result["began_ns"]) / NS_PER_S
    return Failure(first["name"], after_s * seconds / max(1, result["seconds"]))


def _told(result: Told) -> str:
    first = result["findings"][0]
    when = f" at {first['at_ns'] / NS_PER_S:.6f} s" if first["at_ns"] >= 0 else ""
    return f"{first['name']}{when}: {first['text'][:_TEXT_CHARACTERS]}"


def _blows(result: Told) -> list[Blow]:
    return [Blow(**blow) for blow in result.get("blows", ())]


def _axes(job: Job, blows: list[Blow]) -> list[Axis]:
    """Large cuts first: what is cut early makes every later try shorter."""
    strikes = Parts("blows", tuple(blow.number for blow in blows), {blow.number: blow.kind for blow in blows})
    if job.profile != QUORUM:
        plan = Plan.of(job.profile, Scheduler(job.seed).rng("plan"))
        return [strikes, *([Parts("extras", plan.extras)] if plan.extras else [])]
    whole = drawn(Scheduler(job.seed).rng("quorum plan"), job.seconds)
    brokers = Number("brokers", len(whole.layout.serving), 0)
    voters = Number("voters", whole.layout.voters, 1)
    return [brokers, voters, strikes, Halves("operations", whole.operations, 1)]
