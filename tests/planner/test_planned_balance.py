"""Balance by bytes, by replicas and by leaders, and added brokers: tables, and what holds for every cluster."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from planner_clusters import broker, cluster, clusters, loads, partition, preferred_counts

from quorumlog.planner.balance import Limits, add_brokers, balance
from quorumlog.planner.cluster import CannotPlan, Cluster, by_replicas
from quorumlog.planner.faults import faults
from quorumlog.planner.leaders import balance_leaders
from quorumlog.planner.plan import Plan
from tests.parts import few

THREE = [broker(1), broker(2), broker(3)]

BYTES = [
    ("balanced already", [(1, 10), (2, 10), (3, 10)], {}),
    ("within tolerance", [(1, 102), (2, 100), (3, 98)], {}),
    ("one step", [(1, 30), (1, 30), (3, 30)], {1: 2}),
    ("largest that fits", [(1, 60), (1, 25), (1, 5), (2, 30)], {1: 3, 2: 3}),
    ("nothing helps", [(1, 100)], {}),
    ("overshoots", [(1, 40), (1, 40), (1, 40), (2, 60), (3, 90)], {0: 2}),
]


@pytest.mark.parametrize(("held", "want"), [one[1:] for one in BYTES], ids=[one[0] for one in BYTES])
def test_balance_by_bytes(held: list[tuple[int, int]], want: dict[int, int]) -> None:
    found = cluster(THREE, [partition(n, (node_id,), size) for n, (node_id, size) in enumerate(held)])
    assert {move.index: move.after.replicas[0] for move in balance(found).moves} == want


def test_empty_partitions_are_balanced_by_their_number() -> None:
    found = cluster(THREE, [partition(n, (1,), 0) for n in range(9)])
    assert balance(found).moves == ()
    assert len(balance(found, by_replicas).moves) == 6


def test_a_plan_stays_within_its_limits() -> None:
    found = cluster(THREE, [partition(n, (1,), 10) for n in range(9)])
    assert len(balance(found, limits=Limits(replicas=2)).moves) == 2
    assert balance(found, limits=Limits(size_bytes=35)).bytes_copied == 30


def test_an_added_broker_gets_its_share_and_nothing_else_moves() -> None:
    found = cluster([*THREE, broker(4)], [partition(n, (n % 3 + 1,), 10) for n in range(12)])
    plan = add_brokers(found, [4])
    assert [move.after.replicas for move in plan.moves] == [(4,)] * 3
    assert {move.before.replicas for move in plan.moves} == {(1,), (2,), (3,)}
    for unusable in (broker(5, is_live=False), broker(5, cordoned=True)):
        with pytest.raises(CannotPlan, match="broker 5"):
            add_brokers(cluster([*THREE, unusable], []), [5])
    with pytest.raises(CannotPlan, match="tolerance"):
        balance(found, tolerance=1.5)


def test_a_full_window_of_replicas_that_cannot_go_does_not_hide_those_that_can() -> None:
    stuck = [partition(n, (1, 2), 1, "z") for n in range(2_000)]
    found = cluster([broker(1), broker(2)], [*stuck, *(partition(n, (1,), 1, "a") for n in range(400))])
    assert len(balance(found).moves) > 50


@given(clusters(), st.sampled_from([0.0, 0.05, 0.5]))
def test_what_holds_for_every_balance(found: Cluster, tolerance: float) -> None:
    plan = balance(found, tolerance=tolerance)
    _check(found, plan)
    then = found.with_assignments(plan.assignments())
    before, after = loads(found), loads(then)
    if before:
        assert max(after.values()) <= max(before.values()), "balance is never worse"
        assert min(after.values()) >= min(before.values())
        assert sum(one * one for one in after.values()) <= sum(one * one for one in before.values())
        mean = sum(before.values()) / len(before)
        surplus = sum(max(0, one - mean) for one in before.values())
        largest = max((move.size_bytes for move in plan.moves), default=0)
        assert plan.bytes_copied <= surplus + largest * len(before), "only what is above the mean moves"
        if all(abs(one - mean) <= mean * tolerance for one in before.values()):
            assert not plan.moves
    for move in plan.moves:
        old, new = found.spread_of(move.before.replicas), found.spread_of(move.after.replicas)
        assert new.racks >= old.racks
        assert new.fewest_together >= old.fewest_together


@given(clusters(), st.data())
def test_what_holds_for_every_added_broker(found: Cluster, data: st.DataObject) -> None:
    usable = sorted(one for one, broker in found.brokers.items() if broker.takes_new)
    assume(usable)
    added = data.draw(st.sets(st.sampled_from(usable), min_size=1))
    plan = add_brokers(found, added, by_replicas)
    _check(found, plan)
    assert all(set(move.added) <= added for move in plan.moves)


def _check(found: Cluster, plan: Plan) -> None:
    assert faults(found, plan.assignments()) == []
    given_bytes = dict.fromkeys(found.brokers, 0)
    for move in plan.moves:
        assert len(set(move.after.replicas)) == len(move.before.replicas)
        assert all(found.brokers[one].takes_new for one in move.added)
        for one in move.added:
            given_bytes[one] += move.size_bytes
    assert all(given_bytes[one] <= broker.room_bytes for one, broker in found.brokers.items())


@given(clusters())
def test_leaders_change_the_order_of_replicas_only_and_are_never_worse(found: Cluster) -> None:
    plan = balance_leaders(found)
    assert plan.bytes_copied == 0
    assert all(set(move.before.replicas) == set(move.after.replicas) for move in plan.moves)
    assert all(move.after.replicas[0] in found.live for move in plan.moves)
    before, after = preferred_counts(found), preferred_counts(found.with_assignments(plan.assignments()))
    assert max(after.values(), default=0) <= max(before.values(), default=0)
    assert balance_leaders(found.with_assignments(plan.assignments())).moves == (), "a second plan changes nothing"


@settings(max_examples=few(40))
@given(st.lists(st.permutations((1, 2, 3, 4)).map(lambda ids: tuple(ids[:2])), max_size=6))
def test_no_order_of_the_replicas_has_a_smaller_maximum(replicas: list[tuple[int, ...]]) -> None:
    found = cluster([broker(n) for n in (1, 2, 3, 4)], [partition(n, one) for n, one in enumerate(replicas)])
    after = preferred_counts(found.with_assignments(balance_leaders(found).assignments()))
    best = min(max((leaders.count(n) for n in (1, 2, 3, 4)), default=0) for leaders in itertools.product(*replicas))
    assert max(after.values()) == best
