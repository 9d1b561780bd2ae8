"""A log directory that failed comes back while the broker runs: verified whole, its replicas as followers."""

from __future__ import annotations

import pytest
from replica_cluster import RETENTION_CHECK_MS, TOPIC_ID, Node, ReplicaCluster, next_generation

from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog_broker.logdirs.log_directory import LogDirectory
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE
from quorumlog_quorum.metadata.registration import LOST
from quorumlog_storage.files.eviction import OPEN_FILES_DEFAULT
from quorumlog_storage.files.file_handle import open_below
from quorumlog_storage.writer.directory_life import DirectoryOffline, DirectoryState
from tests.rules import rule

PARTITIONS = 4
SEGMENT_BYTES = 1 << 20
A, B = "a" * 700_000, "b" * 700_000  # one segment holds one of them


def failed(directories: int = 2) -> tuple[ReplicaCluster, Node, LogDirectory, list[int]]:
    """Broker 2 follows; /d0 of it has failed. Returns the partitions that lie there, too."""
    cluster = ReplicaCluster(directories=directories)
    cluster.create_topic(partitions=PARTITIONS, segment_bytes=str(SEGMENT_BYTES))
    for index in range(PARTITIONS):
        cluster.wait_led(1, index)
        for value in (A, B):
            cluster.produce(1, value, index=index)
    cluster.run_for(1_000)
    node = cluster.nodes[2]
    queue = node.data_plane.store.queues[node.directory_id("/d0")]
    gone = [index for (_, index), replica in node.replicas.items() if replica.queue is queue]
    fail(node, queue.directory)
    assert gone and queue.directory.life.state is DirectoryState.FAILED
    return cluster, node, queue.directory, gone


def fail(node: Node, directory: LogDirectory) -> None:
    async def failing() -> None:
        directory.life.fail(OSError("EIO"), directory.generation)

    node.run(failing())


def test_its_replicas_follow_again_and_no_other_replica_is_touched() -> None:
    cluster, node, before, gone = failed()
    others = {key: replica for key, replica in node.replicas.items() if key[1] not in gone}
    for index in range(PARTITIONS):
        cluster.produce(1, "c", index=index, acks=1)
    directory = next_generation(node, before)
    node.run(node.data_plane.returns.take_back(directory))
    assert directory.life.is_online
    cluster.run_until(lambda: all(node.log_values(index=index) == [A, B, "c"] for index in range(PARTITIONS)))
    assert all(node.replicas[key] is replica for key, replica in others.items())
    pending = node.data_plane.placements.pending_assignments()
    assert not [one for one in pending if one.directory_id == LOST]


def test_the_logs_of_its_former_generation_keep_no_file_open() -> None:
    """A segment that leaves later would keep its room on the disk as long as the node runs."""
    _, node, before, _ = failed()
    node.disk.resources.open_files.limit = OPEN_FILES_DEFAULT  # none leaves for want of room
    held = open_below(node.disk, "/d0")
    assert held
    node.run(node.data_plane.returns.take_back(next_generation(node, before)))
    assert not set(held) & set(open_below(node.disk, "/d0"))


def test_it_is_not_online_before_every_log_is_verified() -> None:
    _, node, before, gone = failed()
    directory = next_generation(node, before)
    seen: list[tuple[bool, int]] = []
    task = node.loop.create_task(node.data_plane.returns.take_back(directory))

    def over() -> bool:
        opened = sum(node.replicas[TOPIC_ID, index].log is not None for index in gone)
        seen.append((directory.life.is_online, opened))
        return task.done()

    node.cluster.run_until(over)
    assert all(not is_online for is_online, opened in seen if opened < len(gone))
    assert seen[-1] == (True, len(gone))


@rule("storage 7.10")
def test_every_byte_is_verified_also_before_the_recovery_point() -> None:
    """A bit that rotted while nobody looked: the log ends before it, and what follows is copied from the leader."""
    cluster, node, before, gone = failed()
    cluster.run_for(2_000)
    log = f"/d0/t-{gone[0]}/{0:020}.log"
    node.disk.flip_bit(log, 8 * 70)
    directory = next_generation(node, before)
    node.run(node.data_plane.returns.take_back(directory))
    found = [(finding.name, finding.report.cut_bytes > 0) for finding in node.data_plane.recovery_findings.all]
    assert found == [(f"t-{gone[0]}", True)]
    cluster.run_until(lambda: node.log_values(index=gone[0]) == [A, B])


@rule("storage 7.10")
def test_segments_that_leave_after_its_return_are_freed() -> None:
    cluster, node, before, gone = failed()
    node.run(node.data_plane.returns.take_back(next_generation(node, before)))
    cluster.run_until(lambda: node.log_values(index=gone[0]) == [A, B])
    cluster.commit(
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="file.delete.delay.ms", value="100")
    )
    leader = cluster.nodes[1]

    async def delete_first() -> int:
        return await leader.data_plane.delete_path.delete(TOPIC_ID, gone[0], 1, 5_000)

    leader.run(delete_first())
    cluster.run_for(3_000)
    left = node.disk.list(f"/d0/t-{gone[0]}")
    assert f"{1:020}.log" in left and not [name for name in left if name.endswith(".deleted")]


@rule("storage 7.10")
def test_retention_goes_on_in_it() -> None:
    cluster, node, before, gone = failed()
    directory = next_generation(node, before)

    async def online() -> None:
        await node.data_plane.returns.take_back(directory)
        node.data_plane.directory_returned(directory)

    node.run(online())
    cluster.run_until(lambda: node.log_values(index=gone[0]) == [A, B])
    cluster.elect(2, (1, 2, 3), index=gone[0])
    cluster.wait_led(2, gone[0])
    cluster.commit(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="retention.bytes", value="1"))
    cluster.run_for(5 * RETENTION_CHECK_MS)
    assert node.log(index=gone[0]).start_offset == 1


def test_a_directory_that_fails_again_stays_offline() -> None:
    _, node, before, gone = failed()
    directory = next_generation(node, before)
    task = node.loop.create_task(node.data_plane.returns.take_back(directory))
    node.cluster.run_for(1)
    fail(node, directory)
    node.cluster.run_until(task.done)
    assert isinstance(task.exception(), DirectoryOffline) and not directory.life.is_online
    assert all(node.replicas[TOPIC_ID, index].core.failed for index in gone)


def test_a_topic_that_was_deleted_meanwhile_does_not_come_back() -> None:
    cluster, node, before, gone = failed()
    cluster.delete_topic()
    cluster.run_for(1_000)
    directory = next_generation(node, before)
    node.run(node.data_plane.returns.take_back(directory))
    cluster.run_for(1_000)
    assert directory.life.is_online and not node.replicas
    left = [name for name in node.disk.list("/d0") if name.startswith("t-")]
    assert left and all(name.endswith(("-stray", "-delete")) for name in left), gone


@pytest.mark.parametrize("times", [2])
def test_it_may_fail_and_return_again(times: int) -> None:
    cluster, node, directory, _ = failed()
    for _ in range(times):
        directory = next_generation(node, directory)
        node.run(node.data_plane.returns.take_back(directory))
        fail(node, directory)
    directory = next_generation(node, directory)
    node.run(node.data_plane.returns.take_back(directory))
    cluster.produce(1, "c", index=0)
    cluster.run_until(lambda: all(replica.log is not None for replica in node.replicas.values()))
