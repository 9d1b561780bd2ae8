"""The checker of transactional histories accepts what a right cluster may show, and names each fault of a wrong one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from jepsen.checkers.transactional.cycles import Edges, cycles
from jepsen.checkers.transactional.events import NO_OFFSET, Outcome, Poll, writer_of
from tests.jepsen.transactional_model import History, good_history
from tests.jepsen.transactional_samples import BAD, GOOD, change, small, without, writers_interleave


@pytest.mark.parametrize("seed", range(40))
def test_a_right_world_has_no_findings(seed: int) -> None:
    verdict = good_history(seed).verdict()
    assert verdict.findings == []
    assert verdict.counts["transactions committed"] > 10
    assert verdict.counts["transactional values read"] > 50


def test_the_small_world_is_right() -> None:
    verdict = small().verdict()
    assert verdict.findings == []
    assert verdict.counts["wr edges"] == 2


@pytest.mark.parametrize("vary", GOOD)
def test_what_a_right_cluster_may_show(vary: Callable[[History], None]) -> None:
    history = small()
    vary(history)
    assert history.verdict().findings == []


def test_interleaved_writers_are_counted() -> None:
    history = small()
    writers_interleave(history)
    assert history.verdict().counts["ww cycles (allowed)"] == 1


@pytest.mark.parametrize(("falsify", "name"), BAD)
def test_each_fault_is_found_by_its_name(falsify: Callable[[History], None], name: str) -> None:
    history = small()
    falsify(history)
    assert name in history.names()


# --- random worlds with one fault ---


def drop_a_final_value(history: History, rng: random.Random) -> None:
    """In every read: as if one record of a committed transaction had never been written."""
    committed = {one.number for one in history.transactions if one.outcome == Outcome.COMMITTED}
    value = rng.choice([v for poll in history.polls if poll.final for v in poll.values if writer_of(v) in committed])
    history.polls[:] = [without(poll, value) for poll in history.polls]


def abort_what_was_read(history: History, rng: random.Random) -> None:
    there = {writer_of(value) for poll in history.polls if poll.final for value in poll.values}
    number = rng.choice([one.number for one in history.transactions if one.number in there])
    change(history, number, outcome=Outcome.ABORTED)


def hide_from_one_read(history: History, rng: random.Random) -> None:
    at = rng.choice([at for at, poll in enumerate(history.polls) if not poll.final and poll.values])
    history.polls[at] = without(history.polls[at], rng.choice(history.polls[at].values))


def show_too_early(history: History, rng: random.Random) -> None:
    at = rng.choice([at for at, poll in enumerate(history.polls) if not poll.final and poll.values])
    history.polls[at] = history.polls[at]._replace(ended_ns=0)


def forget_final_offsets(history: History, rng: random.Random) -> None:
    at = rng.choice([at for at, one in enumerate(history.shown) if one.final])
    history.shown[at] = history.shown[at]._replace(offset=NO_OFFSET)


RANDOM_FAULTS = [
    (drop_a_final_value, {"lost-write"}),
    (abort_what_was_read, {"aborted-read"}),
    (hide_from_one_read, {"skipped-read"}),
    (show_too_early, {"precommitted-read"}),
    (forget_final_offsets, {"offset-lost", "offset-undone", "output-without-offsets"}),
]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("falsify", "names"), RANDOM_FAULTS)
def test_one_fault_in_a_random_world(
    falsify: Callable[[History, random.Random], None], names: set[str], seed: int
) -> None:
    history = good_history(1000 + seed)
    falsify(history, random.Random(seed))
    assert history.names() & names


# --- the graph ---


@pytest.mark.parametrize("seed", range(30))
def test_cycles_agree_with_reachability(seed: int) -> None:
    rng = random.Random(seed)
    nodes = rng.randint(1, 9)
    edges = Edges()
    reach = [[False] * nodes for _ in range(nodes)]
    for _ in range(rng.randint(0, 14)):
        source, target = rng.randrange(nodes), rng.randrange(nodes)
        edges.add(source, target)
        reach[source][target] = True
    for middle in range(nodes):
        for source in range(nodes):
            for target in range(nodes):
                reach[source][target] |= reach[source][middle] and reach[middle][target]
    want = {frozenset(b for b in range(nodes) if reach[a][b] and reach[b][a]) for a in range(nodes) if reach[a][a]}
    assert {frozenset(component) for component in cycles(edges, nodes)} == want


def test_many_findings_of_a_name_are_counted_and_some_are_kept() -> None:
    history = small()
    history.polls += [Poll(0, 0, 5, [], [], 80)] * 50
    verdict = history.verdict()
    assert verdict.number["skipped-read"] == 50
    assert len(verdict.findings) == 10
