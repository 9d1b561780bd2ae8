"""Read errors of one partition: its replica goes offline alone; a second one takes the directory."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster, values_of

from jepsen.sim.machine.disk_faults import Fail, Operation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import DirectoryAssignment
from quorumlog.messages.metadata_records import DirectoryList, PartitionChangeRecord
from quorumlog_quorum.metadata.registration import LOST
from tests.rules import rule

KINDS = ("pread", "read_bytes", "list")


def unreadable(*names: str, kinds: Sequence[str] = KINDS) -> Callable[[Operation], Fail | None]:
    """Reads in the directories of these partitions fail."""

    def fault(operation: Operation) -> Fail | None:
        is_theirs = any(f"/{name}/" in f"{operation.path}/" for name in names)
        return Fail(errno.EIO) if is_theirs and operation.kind in kinds else None

    return fault


def led(partitions: int = 3, directories: int = 1, **options: int) -> ReplicaCluster:
    cluster = ReplicaCluster(tail_bytes=0, directories=directories, **options)
    cluster.create_topic(partitions=partitions)
    for index in range(partitions):
        cluster.wait_led(1, index)
        for value in "abc":
            cluster.produce(1, value, index=index)
    return cluster


def fetch(cluster: ReplicaCluster, index: int) -> ErrorCode:
    return ErrorCode(cluster.fetch(1, 0, index=index).error_code)


def list_offset(cluster: ReplicaCluster, index: int) -> ErrorCode:
    node = cluster.nodes[1]
    return ErrorCode(node.run(node.data_plane.offset_queries.list_offset(TOPIC_ID, index, 1)).error_code)


def lost(cluster: ReplicaCluster) -> list[int]:
    pending = cluster.nodes[1].data_plane.placements.pending_assignments()
    return [one.index for one in pending if one.directory_id == LOST]


@pytest.mark.parametrize("read", [fetch, list_offset])
def test_a_reader_that_meets_it_takes_the_replica_offline_and_no_other(
    read: Callable[[ReplicaCluster, int], ErrorCode], caplog: pytest.LogCaptureFixture
) -> None:
    cluster = led()
    node = cluster.nodes[1]
    node.disk.faults = unreadable("t-0")
    with caplog.at_level(logging.ERROR):
        assert read(cluster, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    assert "t-0: the replica on this broker is offline: /d0/t-0 cannot be read: read of" in caplog.text
    assert "repair or replace the disk, then restart the node" in caplog.text
    assert node.replicas[TOPIC_ID, 0].core.failed and lost(cluster) == [0]
    with pytest.raises(ApiError) as refused:
        cluster.produce(1, "d", index=0)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert values_of(bytes(cluster.fetch(1, 0, index=1).records)) == ["a", "b", "c"]
    cluster.produce(1, "d", index=1)
    assert not node.failed and list(node.data_plane.unreadable.by_name) == ["t-0"]


def test_a_follower_that_reads_from_the_disk_meets_it_too() -> None:
    cluster = led(partitions=1)
    cluster.kill(3)
    cluster.nodes[1].disk.faults = unreadable("t-0")
    cluster.produce(1, "d", acks=1)
    cluster.nodes[3].disk.remove_tree("/d0/t-0")
    cluster.start(3)
    cluster.run_until(lambda: cluster.nodes[1].replicas[TOPIC_ID, 0].core.failed)
    assert lost(cluster) == [0] and not cluster.nodes[1].failed


@rule("storage 7.7")
def test_a_second_replica_takes_the_directory() -> None:
    cluster = led()
    node = cluster.nodes[1]
    node.disk.faults = unreadable("t-0", "t-1")
    fetch(cluster, 0)
    fetch(cluster, 0)
    cluster.run_for(2_000)
    assert not node.failed, "the same replica again is no second one"
    fetch(cluster, 1)
    assert node.failed == [node.directory_id("/d0")]
    assert all(replica.core.failed for replica in node.replicas.values())
    assert lost(cluster) == [], "the controller is told of the directory"


def test_a_second_replica_in_another_directory_does_not() -> None:
    cluster = led(partitions=4, directories=2)
    node = cluster.nodes[1]
    by_path: dict[str, list[int]] = {}
    for (_, index), replica in node.replicas.items():
        assert replica.queue is not None
        by_path.setdefault(replica.queue.directory.path, []).append(index)
    first, second = (indexes[0] for indexes in by_path.values())
    node.disk.faults = unreadable(f"t-{first}", f"t-{second}")
    fetch(cluster, first)
    fetch(cluster, second)
    assert not node.failed and lost(cluster) == sorted((first, second))


def test_a_replica_whose_directory_fails_before_the_controller_knows_it_is_lost() -> None:
    """The report of the directory would not reach it: it is recorded in no directory."""
    cluster = led(partitions=4, directories=2)
    node = cluster.nodes[1]
    failing = [index for (_, index), replica in node.replicas.items() if replica.queue.directory.path == "/d0"]  # type: ignore[union-attr]
    node.data_plane.store.queues[node.directory_id("/d0")].fail(OSError("EIO"))
    assert failing and lost(cluster) == sorted(failing)


@rule("storage 3.6")
def test_a_log_that_cannot_be_opened_is_lost_until_a_process_has_opened_it() -> None:
    cluster = led()
    node = cluster.nodes[1]
    own = node.directory_id("/d0")
    cluster.kill(1)
    node.disk.faults = unreadable("t-2", kinds=("pread",))
    cluster.start(1)
    cluster.run_until(lambda: lost(cluster) == [2] and node.data_plane.logs_to_open.done)
    assert not node.failed
    others = tuple(cluster.nodes[other].directory_id("/d0") for other in (2, 3))
    cluster.commit(
        PartitionChangeRecord(partition=2, topic_id=TOPIC_ID, directories=DirectoryList(directories=(LOST, *others)))
    )
    cluster.run_for(100)
    assert node.data_plane.placements.pending_assignments() == [], "the metadata has it"
    cluster.kill(1)
    node.disk.faults = lambda _: None
    cluster.start(1)
    assert node.data_plane.placements.pending_assignments() == [], "not before its log is open"
    cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    assert node.data_plane.placements.pending_assignments() == [
        DirectoryAssignment(topic_id=TOPIC_ID, index=2, directory_id=own, keeps_log=True)
    ]


def test_a_directory_whose_list_of_partitions_cannot_be_read_is_offline() -> None:
    """Without a partition's topic id it is not known whose replica is there, so there is none to take offline."""
    cluster = led()
    cluster.kill(1)
    cluster.nodes[1].disk.faults = unreadable("t-2")
    node = cluster.start(1)
    cluster.run_for(500)
    assert node.failed == [node.directory_id("/d0")]


def test_a_node_with_an_unreadable_log_does_not_leave_its_directory_as_clean() -> None:
    """A clean start would trust what this process could not read."""
    cluster = led()
    node = cluster.nodes[1]
    node.disk.faults = unreadable("t-0")
    fetch(cluster, 0)
    node.disk.faults = lambda _: None
    assert node.run(node.data_plane.close()) == frozenset()
