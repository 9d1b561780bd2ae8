"""A failing plan is cut down to what its failure needs, within a bound, and the command that is told replays it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jepsen.__main__ import _parser
from jepsen.sim.quorum.options import cuts_of
from jepsen.sim.quorum.plan import Cuts, drawn
from jepsen.sim.quorum.run import run_quorum
from jepsen.sim.quorum.shrink import MAX_TRIES, Case, Failure, Shrinker, Size
from jepsen.sim.quorum.shrunk import shrink
from jepsen.sim.time.scheduler import Scheduler
from quorum.raft import VoterSet

WHOLE = Case(seconds=60, cuts=Cuts())
SIZE = Size(blows=tuple(range(40)), operations=300, voters=5, brokers=3)
FAILED = Failure("x", 30.0)

Needs = Callable[[tuple[int, ...], int, int, int, int], bool]  # of strikes, operations, voters, brokers, seconds

NEEDS: list[tuple[str, Needs, Case]] = [
    ("nothing", lambda *_: True, Case(seconds=32, cuts=Cuts(blows=(), operations=1, voters=1, brokers=0))),
    (
        "two strikes and three voters",
        lambda blows, operations, voters, brokers, seconds: {3, 17} <= set(blows) and voters >= 3,
        Case(seconds=32, cuts=Cuts(blows=(3, 17), operations=1, voters=3, brokers=0)),
    ),
    (
        "many operations and a broker",
        lambda blows, operations, voters, brokers, seconds: operations >= 100 and brokers >= 1 and 39 in blows,
        Case(seconds=32, cuts=Cuts(blows=(39,), operations=150, voters=1, brokers=1)),
    ),
]


def attempts(needs: Needs, failure: Failure = FAILED) -> Callable[[Case], Failure]:
    def attempt(case: Case) -> Failure:
        cuts = case.cuts
        blows = SIZE.blows if cuts.blows is None else cuts.blows
        sizes = (
            SIZE.operations if cuts.operations is None else cuts.operations,
            SIZE.voters if cuts.voters is None else cuts.voters,
            SIZE.brokers if cuts.brokers is None else cuts.brokers,
        )
        return failure if needs(blows, *sizes, case.seconds) else Failure("")

    return attempt


@pytest.mark.parametrize(("needs", "want"), [row[1:] for row in NEEDS], ids=[row[0] for row in NEEDS])
def test_what_is_not_needed_is_cut(needs: Needs, want: Case) -> None:
    shrinker = Shrinker(attempts(needs), WHOLE, FAILED, SIZE, say=lambda _: None)
    assert shrinker.run() == want
    assert shrinker.tries <= MAX_TRIES


def test_another_failure_does_not_count() -> None:
    shrinker = Shrinker(attempts(lambda *_: True, Failure("y")), WHOLE, FAILED, SIZE, say=lambda _: None)
    assert shrinker.run() == WHOLE


def test_tries_are_bounded() -> None:
    """Every second strike is needed, so that no half can be taken out."""
    odd = set(SIZE.blows[1::2])
    shrinker = Shrinker(attempts(lambda blows, *_: odd <= set(blows)), WHOLE, FAILED, SIZE, say=lambda _: None)
    shrinker.run()
    assert shrinker.tries == MAX_TRIES


def test_a_shorter_run_has_the_beginning_of_the_plan() -> None:
    for seed in range(20):
        short, long = (drawn(Scheduler(seed).rng("quorum plan"), seconds) for seconds in (20, 60))
        assert short.blows == long.blows[: len(short.blows)]
        assert (short.layout, short.clients) == (long.layout, long.clients)
        assert all(blow.at_ms >= 20_000 for blow in long.blows[len(short.blows) :])


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # killed coroutines are dropped
def test_a_planted_mistake_is_shrunk_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the voters count as a majority."""
    monkeypatch.setattr(VoterSet, "majority", property(lambda voters: max(1, len(voters) // 2)))
    seed = next(seed for seed in range(1, 20) if drawn(Scheduler(seed).rng("quorum plan"), 30).layout.voters == 4)
    told: list[str] = []
    command = shrink(seed, 30, Cuts(), told.append)
    assert command.startswith(f"./dev sim --seed {seed} --profile quorum --seconds ")
    assert "committed-is-durable" in told[0]
    options = _parser().parse_args(command.split()[1:])
    cuts = cuts_of(options)
    assert cuts.voters is not None and cuts.voters < 4 and cuts.brokers in (None, 0) and cuts.blows == ()
    again = run_quorum(seed, seconds=options.seconds, cuts=cuts)
    assert again.findings[0].name == "committed-is-durable"
