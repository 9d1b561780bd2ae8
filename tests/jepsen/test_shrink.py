"""A failing run is cut down to what its failure needs, within a bound, and the command that is told replays it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen import swarm as swarm_command
from jepsen.__main__ import _parser, as_json, main
from jepsen.mutation.mutant import MUTANTS, apply, copy_tree, read_mutant
from jepsen.pool.runner import Runner
from jepsen.pool.shrunk import Told, failure_of, shrink
from jepsen.sim.cuts import Cuts
from jepsen.sim.job import QUORUM, Job
from jepsen.sim.profiles.plan import EXTRAS, PROFILES, Plan
from jepsen.sim.quorum.plan import drawn
from jepsen.sim.shrink.options import cuts_of, replay, unfit
from jepsen.sim.shrink.shrinker import MAX_TRIES, Axis, Case, Failure, Halves, Number, Parts, Shrinker
from jepsen.sim.simulate import simulate
from jepsen.sim.time.scheduler import NS_PER_S, Scheduler
from jepsen.sim.workload.operator.chores import CHORES
from quorumlog_quorum.raft import VoterSet

WHOLE = Case(seconds=60, cuts=Cuts())
BLOWS = tuple(range(40))
KINDS = {number: ("kill", "pause", "slow")[number % 3] for number in BLOWS}
STRIKES = Parts("blows", BLOWS, KINDS)
OF_QUORUM: list[Axis] = [Number("brokers", 3, 0), Number("voters", 5, 1), STRIKES, Halves("operations", 300, 1)]
OF_CLUSTER: list[Axis] = [STRIKES, Parts("extras", ("settings", "moves", "levels"))]
FAILED = Failure("x", 30.0)

Needs = Callable[[Case], bool]


@pytest.fixture(autouse=True)
def level_of_the_log() -> Iterator[None]:
    """The command silences all nodes of its process, and so those of other tests."""
    logger = logging.getLogger("quorumlog")
    before = logger.level
    yield
    logger.setLevel(before)


def silent(_line: str) -> None:
    pass


def shrinker_of(needs: Needs, failure: Failure = FAILED, whole: Case = WHOLE) -> Shrinker:
    return Shrinker(lambda case: failure if needs(case) else Failure(""), whole, FAILED, silent)


def kept(case: Case) -> set[int]:
    return set(BLOWS if case.cuts.blows is None else case.cuts.blows)


def number(case: Case, name: str, whole: int) -> int:
    value: int | None = getattr(case.cuts, name)
    return whole if value is None else value


def has_extra(case: Case, name: str) -> bool:
    return case.cuts.extras is None or name in case.cuts.extras


# --- the search ---

SEARCHES: list[tuple[str, list[Axis], Needs, Case]] = [
    (
        "nothing of a quorum",
        OF_QUORUM,
        lambda _: True,
        Case(seconds=32, cuts=Cuts(blows=(), operations=1, voters=1, brokers=0)),
    ),
    (
        "two strikes and three voters",
        OF_QUORUM,
        lambda case: {3, 17} <= kept(case) and number(case, "voters", 5) >= 3,
        Case(seconds=32, cuts=Cuts(blows=(3, 17), operations=1, voters=3, brokers=0)),
    ),
    (
        "many operations and a broker",
        OF_QUORUM,
        lambda case: number(case, "operations", 300) >= 100 and number(case, "brokers", 3) >= 1 and 39 in kept(case),
        Case(seconds=32, cuts=Cuts(blows=(39,), operations=150, voters=1, brokers=1)),
    ),
    ("nothing of a cluster", OF_CLUSTER, lambda _: True, Case(seconds=32, cuts=Cuts(blows=(), extras=()))),
    (
        "one extra and a whole kind of strikes",
        OF_CLUSTER,
        lambda case: has_extra(case, "moves") and {one for one in BLOWS if KINDS[one] == "slow"} <= kept(case),
        Case(seconds=32, cuts=Cuts(blows=tuple(one for one in BLOWS if KINDS[one] == "slow"), extras=("moves",))),
    ),
    (
        "not monotone: an even number of strikes",
        OF_CLUSTER,
        lambda case: 7 in kept(case) and len(kept(case)) % 2 == 0,
        Case(seconds=32, cuts=Cuts(blows=(7, 8), extras=())),
    ),
]


@pytest.mark.parametrize(("axes", "needs", "want"), [row[1:] for row in SEARCHES], ids=[row[0] for row in SEARCHES])
def test_what_is_not_needed_is_cut(axes: list[Axis], needs: Needs, want: Case) -> None:
    shrinker = shrinker_of(needs)
    found = shrinker.run(axes)
    assert shrinker.tries <= MAX_TRIES
    assert needs(found)
    if want.cuts.blows == (7, 8):  # which other one stays does not matter
        assert len(found.cuts.blows or ()) == 2
    else:
        assert found == want


@given(needed=st.sets(st.sampled_from(BLOWS), max_size=3), extra=st.sampled_from(("settings", "moves", "levels")))
def test_a_few_needed_strikes_are_found(needed: set[int], extra: str) -> None:
    found = shrinker_of(lambda case: needed <= kept(case) and has_extra(case, extra)).run(OF_CLUSTER)
    assert found.cuts == Cuts(blows=tuple(sorted(needed)), extras=(extra,))


@given(seed=st.integers(0, 2**32), share=st.floats(0, 1), names=st.sampled_from(("x", "xy")))
def test_the_result_has_failed_in_the_same_way_whatever_fails(seed: int, share: float, names: str) -> None:
    """Runs fail at random, under one name or two, at any time."""
    tried = dict[Case, Failure]()

    def attempt(case: Case) -> Failure:
        assert case not in tried, "tried twice"
        rng = Random(f"{seed} {case}")
        name = rng.choice(names) if rng.random() < share else ""
        return tried.setdefault(case, Failure(name, rng.choice((-1.0, rng.uniform(0, 90)))))

    shrinker = Shrinker(attempt, WHOLE, FAILED, silent)
    found = shrinker.run(OF_QUORUM)
    assert found == WHOLE or tried[found].name == FAILED.name
    assert found.seconds <= WHOLE.seconds
    assert shrinker.tries == len(tried) <= MAX_TRIES


def test_another_failure_does_not_count() -> None:
    assert shrinker_of(lambda _: True, Failure("y")).run(OF_QUORUM) == WHOLE


def test_tries_are_bounded() -> None:
    """Every second strike is needed, so that no half can be taken out."""
    odd = set(BLOWS[1::2])
    shrinker = shrinker_of(lambda case: odd <= kept(case))
    shrinker.run(OF_CLUSTER)
    assert shrinker.tries == MAX_TRIES


def test_time_is_bounded() -> None:
    now_s = [0.0]

    def attempt(_case: Case) -> Failure:
        now_s[0] += 7.0
        return FAILED

    shrinker = Shrinker(attempt, WHOLE, FAILED, silent, limit_s=20.0, clock_s=lambda: now_s[0])
    shrinker.run(OF_QUORUM)
    assert shrinker.tries == 3  # the last one begins at 14 s


@pytest.mark.parametrize("at_s", [-1.0, 61.0])
def test_what_is_found_after_the_strikes_is_tried_with_half_of_the_seconds(at_s: float) -> None:
    failure = Failure("x", at_s)
    shrinker = Shrinker(lambda case: failure if case.seconds >= 10 else Failure(""), WHOLE, failure, silent)
    assert shrinker.run([]).seconds == 15


@pytest.mark.parametrize(
    ("at_ns", "began_ns", "seconds", "want"),
    [
        (-1, 5, 30, Failure("x", -1.0)),
        (3 * NS_PER_S, -1, 30, Failure("x", 0.0)),
        (13 * NS_PER_S, 3 * NS_PER_S, 30, Failure("x", 10.0)),
        (13 * NS_PER_S, 3 * NS_PER_S, 15, Failure("x", 20.0)),
    ],
    ids=["at the end", "before the first strike", "between strikes", "twice as many brokers"],
)
def test_the_time_of_a_finding_is_told_in_the_seconds_that_were_asked_for(
    at_ns: int, began_ns: int, seconds: int, want: Failure
) -> None:
    findings = [{"name": "x", "text": "", "at_ns": at_ns}, {"name": "y", "text": "", "at_ns": 0}]
    assert failure_of({"findings": findings, "began_ns": began_ns, "seconds": seconds}, 30) == want


# --- the command ---


@given(
    profile=st.sampled_from((QUORUM, "swarm", *PROFILES)),
    blows=st.none() | st.lists(st.integers(0, 99)).map(tuple),
    extras=st.none() | st.lists(st.sampled_from(EXTRAS)).map(tuple),
    sizes=st.tuples(st.none() | st.integers(1, 500), st.none() | st.integers(1, 5), st.none() | st.integers(0, 3)),
)
def test_a_command_gives_the_same_cuts(
    profile: str,
    blows: tuple[int, ...] | None,
    extras: tuple[str, ...] | None,
    sizes: tuple[int | None, int | None, int | None],
) -> None:
    operations, voters, brokers = sizes if profile == QUORUM else (None, None, None)
    of_cluster = None if profile == QUORUM else extras
    cuts = Cuts(blows=blows, extras=of_cluster, operations=operations, voters=voters, brokers=brokers)
    options = _parser().parse_args(replay(7, profile, 12, cuts.options).split()[1:])
    assert (options.seed, options.profile, options.seconds, cuts_of(options)) == (7, profile, 12, cuts)
    assert unfit(cuts, profile) == ""
    child = _parser().parse_args(Job(seed=7, profile=profile, seconds=12, cuts=cuts).options)
    assert (child.seed, child.profile, child.seconds, cuts_of(child), child.json) == (7, profile, 12, cuts, True)


@pytest.mark.parametrize(
    "wrong", ["--profile quorum --extras moves", "--voters 3", "--profile moves --brokers 1", "--extras x", "--blows x"]
)
def test_cuts_that_a_profile_does_not_have_are_refused(wrong: str) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["sim", "--seed", "1", *wrong.split()])
    assert refused.value.code == 2


def test_a_seed_that_does_not_fail_is_not_shrunk(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--seed", "1", "--profile", QUORUM, "--seconds", "3", "--shrink"]) == 0
    assert capsys.readouterr().out == "seed 1 does not fail\n"


def test_a_swarm_shrinks_a_few_failing_seeds_of_any_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {"verdict": "INVALID", "wire": "lane", "trace": "", "exercised": {}, "findings": []}
    shrunk: list[str] = []

    def shrink_in_children(job: Job, say: Callable[[str], None]) -> str:
        shrunk.append(job.profile)
        return "command"

    monkeypatch.setattr(swarm_command, "results", lambda jobs, *_: ((job, bad) for job in jobs))
    monkeypatch.setattr(swarm_command, "shrink_in_children", shrink_in_children)
    assert swarm_command.swarm(1, 9, None, 30, 1, None) == 1
    assert shrunk == list(swarm_command.TURNS[: swarm_command.MAX_SHRUNK])
    assert swarm_command.MAX_SHRUNK < 9


# --- plans ---


def test_a_shorter_run_has_the_beginning_of_the_plan() -> None:
    for seed in range(20):
        short, long = (drawn(Scheduler(seed).rng("quorum plan"), seconds) for seconds in (20, 60))
        assert short.blows == long.blows[: len(short.blows)]
        assert (short.layout, short.clients) == (long.layout, long.clients)
        assert all(blow.at_ms >= 20_000 for blow in long.blows[len(short.blows) :])


@pytest.mark.parametrize("profile", ["swarm", *PROFILES])
def test_a_plan_has_the_extras_that_are_kept(profile: str) -> None:
    for seed in range(10):
        plan = Plan.of(profile, Scheduler(seed).rng("plan"))
        assert set(plan.extras) <= set(EXTRAS)
        assert plan.cut(Cuts()) == plan.cut(Cuts(extras=plan.extras)) == plan
        some = plan.extras[::2]
        assert plan.cut(Cuts(extras=some)).extras == some
        assert plan.cut(Cuts(extras=CHORES)).faults == plan.faults


def test_strikes_that_are_taken_out_leave_the_others_as_they_were() -> None:
    with closing(Runner(None, False, os.environ)) as runner:
        whole = runner.run(Job(seed=2, profile="pairs", seconds=8))["blows"]
        some = [blow for blow in whole if blow["number"] % 3 == 1]
        cuts = Cuts(blows=tuple(blow["number"] for blow in some))
        cut = runner.run(Job(seed=2, profile="pairs", seconds=8, cuts=cuts))["blows"]
    assert [blow["number"] for blow in whole] == list(range(len(whole)))
    assert len(some) > 1
    assert cut == some


# --- planted mistakes ---


def in_this_process(job: Job) -> Told:
    told: Told = json.loads(as_json(simulate(job.seed, job.profile, job.seconds, job.cuts), 0.0))
    return told


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # killed coroutines are dropped
def test_a_mistake_of_a_quorum_is_shrunk_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the voters count as a majority."""
    monkeypatch.setattr(VoterSet, "majority", property(lambda voters: max(1, len(voters) // 2)))
    seed = next(seed for seed in range(1, 20) if drawn(Scheduler(seed).rng("quorum plan"), 30).layout.voters == 4)
    told: list[str] = []
    command = shrink(Job(seed=seed, profile=QUORUM, seconds=30), in_this_process, told.append)
    assert command.startswith(f"./dev sim --seed {seed} --profile quorum --seconds ")
    assert "committed-is-durable" in told[0]
    options = _parser().parse_args(command.split()[1:])
    cuts = cuts_of(options)
    assert cuts.voters is not None and cuts.voters < 4 and cuts.brokers in (None, 0) and cuts.blows == ()
    again = simulate(seed, QUORUM, options.seconds, cuts)
    assert again.findings[0].name == "committed-is-durable"


@pytest.mark.timeout(300)
def test_a_mistake_of_a_cluster_is_shrunk_and_replayed(tmp_path: Path) -> None:
    """After a truncation the producers keep what was cut: only a strike leads to one."""
    copy_tree(tmp_path)
    assert apply(read_mutant(MUTANTS / "79-cut-producers-remembered.diff"), tmp_path) == ""
    told: list[str] = []
    with closing(Runner(tmp_path, False, os.environ)) as runner:
        command = shrink(Job(seed=6, profile="disks", seconds=5), runner.run, told.append)
        options = _parser().parse_args(command.split()[1:])
        again = runner.run(Job(seed=6, profile="disks", seconds=options.seconds, cuts=cuts_of(options)))
    assert "producers-equal-log" in told[0]
    assert again["findings"][0]["name"] == "producers-equal-log"
    assert again["trace"] in told[-len(again["blows"]) - 1]
    assert [blow["number"] for blow in again["blows"]] == list(cuts_of(options).blows or ())
    assert len(again["blows"]) == 1
