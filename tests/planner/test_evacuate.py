"""Drain of brokers, racks and directories, and moves to given brokers: tables, and what holds for every cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner_clusters import GIB, broker, cluster, clusters, partition

from quorumlog.planner.cluster import ANYWHERE, Broker, CannotPlan, Cluster, Directory, Partition
from quorumlog.planner.directories import drain_directory
from quorumlog.planner.evacuate import drain_brokers, drain_rack, move_to_brokers
from quorumlog.planner.faults import faults
from quorumlog.planner.plan import Plan


def after(plan: Plan) -> list[tuple[int, ...]]:
    return [move.after.replicas for move in plan.moves]


RACKS = [broker(1, "a"), broker(2, "b"), broker(3, "c"), broker(4, "a"), broker(5, "b")]


def test_a_replacement_takes_the_place_of_the_replica_in_its_rack() -> None:
    plan = drain_brokers(cluster(RACKS, [partition(0, (1, 2, 3)), partition(1, (2, 3, 4))]), [1])
    assert after(plan) == [(4, 2, 3)], "rack a has broker 4; partition 1 does not change"
    assert (plan.bytes_copied, plan.replicas_added, plan.leaders_changed) == (GIB, 1, 1)
    assert plan.rollback()["t", 0].replicas == (1, 2, 3)
    assert not plan.notes


def test_large_partitions_choose_first_and_even_out_the_targets() -> None:
    sizes = [50, 30, 20, 10, 10]
    found = cluster([broker(n) for n in (1, 2, 3)], [partition(n, (1,), size) for n, size in enumerate(sizes)])
    plan = drain_brokers(found, [1])
    assert {move.index: move.after.replicas[0] for move in plan.moves} == {0: 2, 1: 3, 2: 3, 3: 2, 4: 3}


def test_a_drained_rack_leaves_fewer_racks_and_says_so() -> None:
    plan = drain_rack(cluster(RACKS, [partition(0, (1, 2, 3)), partition(1, (4, 5, 3))]), "c")
    assert after(plan) in (
        [(1, 2, 4), (4, 5, 2)],
        [(1, 2, 5), (4, 5, 1)],
        [(1, 2, 4), (4, 5, 1)],
        [(1, 2, 5), (4, 5, 2)],
    )
    assert plan.notes == ("2 partitions will lie in fewer racks than now, such as t-0",)


REFUSED = [
    ("unknown broker", [broker(1), broker(2)], [9], "no broker 9"),
    ("too few brokers", [broker(1), broker(2)], [1], "add a broker"),
    ("only fenced ones", [broker(1), broker(2), broker(3, is_live=False)], [1], "add a broker"),
    ("only cordoned ones", [broker(1), broker(2), broker(3, cordoned=True)], [1], "add a broker"),
    ("no room", [broker(1), broker(2), broker(3, room=GIB - 1)], [1], "bytes left"),
]


@pytest.mark.parametrize(("brokers", "leaving", "says"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_a_drain_that_cannot_be_done_says_why(brokers: list[Broker], leaving: list[int], says: str) -> None:
    with pytest.raises(CannotPlan, match=says):
        drain_brokers(cluster(brokers, [partition(0, (1, 2))]), leaving)


def test_room_counts_what_the_plan_has_put_there() -> None:
    found = cluster([broker(1), broker(2, room=3), broker(3, room=2)], [partition(n, (1,), 2) for n in range(2)])
    assert sorted(after(drain_brokers(found, [1]))) == [(2,), (3,)]
    with pytest.raises(CannotPlan, match="2 bytes left"):
        drain_brokers(cluster(list(found.brokers.values()), [partition(n, (1,), 2) for n in range(3)]), [1])


def test_a_broker_that_is_gone_can_be_drained() -> None:
    assert after(drain_brokers(cluster([broker(1), broker(2)], [partition(0, (7, 1))]), [7])) == [(2, 1)]


def test_partitions_move_to_given_brokers_and_those_there_stay() -> None:
    found = cluster(RACKS, [partition(0, (1, 2)), partition(1, (4, 5))])
    plan = move_to_brokers(found, [("t", 0)], [2, 3])
    assert after(plan) == [(3, 2)]
    with pytest.raises(CannotPlan, match="no partition t-9"):
        move_to_brokers(found, [("t", 9)], [1, 2])


@given(clusters(), st.data())
def test_what_holds_for_every_drain(found: Cluster, data: st.DataObject) -> None:
    leaving = data.draw(st.sets(st.sampled_from(sorted(found.brokers)), min_size=1, max_size=3))
    try:
        plan = drain_brokers(found, leaving)
    except CannotPlan:
        return  # the table above says when
    assert plan == drain_brokers(
        Cluster.of(reversed([*found.brokers.values()]), reversed([*found.partitions.values()])), leaving
    )
    then = found.with_assignments(plan.assignments())
    assert not any(node_id in leaving for node_id, _ in then.replicas()), "drained means empty"
    needed = sum(one.size_bytes for node_id, one in found.replicas() if node_id in leaving)
    assert plan.bytes_copied == needed, "each replica that must leave is copied once, and nothing else"
    _check(found, plan)
    for move in plan.moves:
        if found.spread_of(move.after.replicas) < found.spread_of(move.before.replicas):
            assert _no_better(found, move.before.replicas, move.after.replicas, leaving), "racks respected"


def _check(found: Cluster, plan: Plan) -> None:
    """For any plan: it passes our own check, keeps every factor, and never has fewer live copies."""
    assert faults(found, plan.assignments()) == []
    for move in plan.moves:
        assert len(set(move.after.replicas)) == len(move.before.replicas) == len(move.after.log_dirs)
        assert len(found.live & set(move.after.replicas)) >= len(found.live & set(move.before.replicas))


def _no_better(found: Cluster, before: tuple[int, ...], replicas: tuple[int, ...], leaving: set[int]) -> bool:
    """No other broker with room in place of an added one spreads it better."""
    added = [one for one in replicas if one not in before]
    free = [
        one
        for one, broker in found.brokers.items()
        if broker.takes_new and one not in leaving and one not in replicas and broker.room_bytes > 24 * 100
    ]
    return all(
        found.spread_of([other if one == old else one for one in replicas]) <= found.spread_of(replicas)
        for old in added
        for other in free
    )


# --- directories ---

A, B, C = (Directory(path=path, usable_bytes=100) for path in ("/a", "/b", "/c"))


def in_directories(directories: tuple[Directory, ...], sizes: list[int], path: str = "/a") -> Cluster:
    brokers = [Broker(node_id=1, directories=directories), broker(2), broker(3)]
    parts = [
        Partition(topic="t", index=n, replicas=(2, 1), size_bytes=size, paths=("/2", path))
        for n, size in enumerate(sizes)
    ]
    return Cluster.of(brokers, parts)


def test_a_drained_directory_gives_to_the_others_of_its_broker() -> None:
    plan = drain_directory(in_directories((A, B, C), [40, 30, 20, 10]), 1, "/a")
    assert [move.after.log_dirs for move in plan.moves] == [(ANYWHERE, path) for path in ("/b", "/c", "/c", "/b")]
    assert [move.changes_replicas for move in plan.moves] == [False] * 4
    assert (plan.bytes_copied, plan.replicas_added, plan.between_directories) == (100, 0, 4)
    assert plan.rollback()["t", 0].log_dirs == (ANYWHERE, "/a")


def test_an_offline_directory_gives_to_other_brokers() -> None:
    offline = Directory(path="/a", is_online=False, takes_new=False)
    plan = drain_directory(in_directories((offline, B), [40]), 1, "/a")
    assert [move.after.replicas for move in plan.moves] == [(2, 3)]


NO_DIRECTORY = [
    ("unknown path", (A, B), [1], "/x", "no log directory /x"),
    ("no other", (A,), [1], "/a", "no other log directory"),
    ("the other is cordoned", (A, Directory(path="/b", takes_new=False)), [1], "/a", "no other log directory"),
    ("no room", (A, B), [60, 60], "/a", "60 bytes left"),
]


@pytest.mark.parametrize(
    ("directories", "sizes", "path", "says"), [one[1:] for one in NO_DIRECTORY], ids=[one[0] for one in NO_DIRECTORY]
)
def test_a_directory_that_cannot_be_drained_says_why(
    directories: tuple[Directory, ...], sizes: list[int], path: str, says: str
) -> None:
    with pytest.raises(CannotPlan, match=says):
        drain_directory(in_directories(directories, sizes), 1, path)


def test_an_empty_directory_is_drained_already() -> None:
    assert drain_directory(in_directories((A,), []), 1, "/a").moves == ()
