"""Logs are opened beside the writer, some at a time; a log that is being opened is not touched by anything else."""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster

from quorumlog_storage.directory.partition_log import PartitionLog
from tests.rules import rule

PARTITIONS = 6


def cluster_with_data(directories: int = 1) -> ReplicaCluster:
    cluster = ReplicaCluster(directories=directories)
    cluster.create_topic(partitions=PARTITIONS)
    for index in range(PARTITIONS):
        cluster.wait_led(1, index)
        cluster.produce(1, "a", "b", index=index)
    return cluster


def watched_loads(monkeypatch: pytest.MonkeyPatch, cluster: ReplicaCluster) -> list[int]:
    """How many partitions were handed over whenever a log was opened."""
    seen: list[int] = []
    load = PartitionLog.load.__func__  # type: ignore[attr-defined]

    def watched(cls: type[PartitionLog], directories: object, *rest: object, **settings: object) -> object:
        node = cluster.nodes[1]
        seen.append(sum(len(queue.handed_over) for queue in node.data_plane.store.queues.values()))
        return load(cls, directories, *rest, **settings)

    monkeypatch.setattr(PartitionLog, "load", classmethod(watched))
    return seen


@rule("storage 3.12")
@pytest.mark.parametrize("directories", [1, 2])
def test_several_logs_are_under_way_and_none_is_left_behind(monkeypatch: pytest.MonkeyPatch, directories: int) -> None:
    cluster = cluster_with_data(directories)
    cluster.nodes[1].kill()
    seen = watched_loads(monkeypatch, cluster)
    node = cluster.start(1)
    cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    assert len(seen) == PARTITIONS and max(seen) > 1
    assert all(len(queue.handed_over) == 0 for queue in node.data_plane.store.queues.values())
    assert [node.log_values(index=index) for index in range(PARTITIONS)] == [["a", "b"]] * PARTITIONS


def test_a_topic_that_is_deleted_while_its_logs_are_opened_goes_once_they_are() -> None:
    cluster = cluster_with_data()
    cluster.nodes[1].kill()
    node = cluster.start(1)
    (queue,) = node.data_plane.store.queues.values()
    cluster.run_until(lambda: len(queue.handed_over) > 0)
    cluster.delete_topic()
    cluster.run_for(2_000)
    assert len(queue.handed_over) == 0 and not node.replicas and not node.crashes and not node.failed
    assert [name for name in node.disk.list("/d0") if name.startswith("t-") and not name.endswith("-delete")] == []


def test_a_broker_that_stops_waits_for_the_logs_under_way_and_opens_no_others() -> None:
    cluster = cluster_with_data()
    cluster.nodes[1].kill()
    node = cluster.start(1)
    (queue,) = node.data_plane.store.queues.values()
    cluster.run_until(lambda: len(queue.handed_over) > 0)
    node.run(node.data_plane.close())
    assert len(queue.handed_over) == 0 and not node.crashes


@rule("storage 3.12", "log 8.10")
def test_the_progress_of_each_directory_is_told_until_its_logs_are_open() -> None:
    cluster = cluster_with_data(directories=2)
    cluster.nodes[1].cut_power()
    node = cluster.start(1)
    told: list[list[tuple[str, int]]] = []

    def opened() -> bool:
        told.append([(one.path, one.logs_left) for one in node.data_plane.opening_progress.by_directory()])
        done: bool = node.data_plane.logs_to_open.done
        return done

    cluster.run_until(opened)
    assert max(sum(count for _, count in one) for one in told) == PARTITIONS
    assert {path for one in told for path, _ in one} == {"/d0", "/d1"} and told[-1] == []


@rule("log 8.4")
def test_the_log_of_a_replica_is_recovered_with_the_noted_point_of_its_own_directory() -> None:
    cluster = cluster_with_data()
    node = cluster.nodes[1]
    before = {index: node.log(TOPIC_ID, index).end_offset for index in range(PARTITIONS)}
    node.cut_power()
    node = cluster.start(1)
    cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    assert {index: node.log(TOPIC_ID, index).end_offset for index in range(PARTITIONS)} == before
