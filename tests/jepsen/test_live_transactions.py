"""What a live run of transactions must have exercised, and what it tells of its faults."""

from __future__ import annotations

import itertools

import pytest

from jepsen.live.transactions.minimums import by_target, minimums
from jepsen.live.transactions.run import Options, Outcome
from jepsen.live.transactions.strikes import AIMS, KINDS, Strike
from jepsen.transactions.recorder import Recorder
from quorumlog.ids import NodeId

OPTIONS = Options(count=6_000, clients=96, seed=1, every=1_000)
ENOUGH = {
    "transactions committed": 4_000, "transactions aborted": 900, "transactional values read": 40_000,
    "clients killed": 60, "producer ids run out": 24,
}  # fmt: skip


def struck(number: int, *, before: int = 500, away: int = 100, is_open: int = 90) -> Strike:
    kind, aim = KINDS[number % len(KINDS)], list(AIMS.values())[number % len(AIMS)]
    return Strike(kind, NodeId(1), aim, 5.0, NodeId(2), -3_000, before, away, is_open)


def outcome(counts: dict[str, int], strikes: list[Strike], ended: int = 6_000) -> Outcome:
    return Outcome(OPTIONS, counts=counts, strikes=strikes, ended=ended)


def test_a_whole_run_is_enough() -> None:
    found = outcome(ENOUGH, [struck(number) for number in range(6)])
    assert found.verdict == "VALID", [str(one) for one in found.minimums]


@pytest.mark.parametrize("name", ENOUGH)
def test_a_run_without_one_thing_exercised_too_little(name: str) -> None:
    found = outcome({**ENOUGH, name: 0}, [struck(number) for number in range(6)])
    assert found.verdict == "TOO LITTLE EXERCISED"
    assert len([one for one in found.minimums if not one.is_met]) == 1


@pytest.mark.parametrize("lost", ["faults", "before", "away", "is_open", "ended"])
def test_a_run_whose_faults_met_nothing_exercised_too_little(lost: str) -> None:
    strikes = [struck(number) for number in range(5 if lost == "faults" else 6)]
    if lost in ("before", "away", "is_open"):
        strikes = [struck(number, **{lost: 0}) for number in range(6)]
    assert outcome(ENOUGH, strikes, 5_999 if lost == "ended" else 6_000).verdict == "TOO LITTLE EXERCISED"


def test_kinds_and_aims_go_round_so_that_each_aim_is_killed() -> None:
    pairs = {(one.kind, one.aim) for one in map(struck, range(len(KINDS) * len(AIMS)))}
    assert pairs == set(itertools.product(KINDS, AIMS.values()))
    killed = {one.aim for one in map(struck, range(2 * len(AIMS))) if one.kind == "kill -9"}
    assert killed == set(AIMS.values())


def test_old_ids_need_not_run_out_in_a_run_of_few_transactions() -> None:
    few = minimums(100, {}, [], faults=1, clients=1, old=24, turns=1)
    assert not [one for one in few if "old ids" in one.what]


def test_the_report_adds_up_each_target() -> None:
    lines = by_target([struck(0, before=7), struck(12, before=1_000)])
    assert lines == [
        "kill -9, a node that coordinates transactions: 2 faults; 1,007 commits acknowledged before, 180 transactions "
        "open, 200 commits while it was away"
    ]


def test_a_producer_id_that_ran_out_is_counted_once() -> None:
    recorder = Recorder(lambda: 0)
    for name, producer_id in (("a", 1), ("a", 1), ("b", 2), ("a", 3), ("a", 3)):
        recorder.producer_id(name, producer_id)
    assert recorder.counts["producer ids run out"] == 1
