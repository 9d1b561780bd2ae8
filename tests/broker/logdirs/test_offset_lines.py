"""Offset files of a broker: a topic made anew inherits no line of its namesake, and a restart loses none."""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster

from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.ids import Uuid
from quorumlog_storage.directory.offset_files import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, OffsetFile
from tests.rules import rule

NAMESAKE = bytes([8]) * 16
MANY = 30  # partitions


def led_cluster(partitions: int = 1) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(partitions=partitions)
    for index in range(partitions):
        cluster.wait_led(1, index)
    return cluster


def line(node: Node, file: str, index: int = 0) -> int | None:
    return OffsetFile(node.disk, f"/d0/{file}").offsets.get(("t", index))


def start_of(node: Node, topic_id: Uuid) -> int:
    log = node.replicas[topic_id, 0].log
    assert log is not None
    return log.start_offset


def fail_at_next_write_of(cluster: ReplicaCluster, node_id: int, name: str) -> None:
    """The disk fails as the node begins to write `name`; nothing more is written, and the process ends."""
    node = cluster.nodes[node_id]
    node.disk.faults = lambda operation: Fail() if f"/{name}.tmp" in operation.path else None
    cluster.run_until(lambda: bool(node.failed))
    node.disk.faults = lambda _: None
    cluster.kill(node_id)


@pytest.mark.parametrize("file", [RECOVERY_POINTS, LOG_STARTS])
def test_a_topic_made_anew_holds_all_its_records_where_a_node_ended_before_it_forgot_the_first_one(file: str) -> None:
    """Deleted to 6, deleted as a topic; the node ends after the rename and before the dead topic's lines are gone."""
    cluster = led_cluster()
    cluster.produce(1, *(f"dead-{number}" for number in range(8)))
    leader = cluster.nodes[1]
    assert leader.run(_delete_records(leader, 6)) == 6
    cluster.run_for(1_500)
    ends = cluster.nodes[3]
    assert line(ends, RECOVERY_POINTS) == 8 and line(ends, LOG_STARTS) == 6
    cluster.delete_topic()
    fail_at_next_write_of(cluster, 3, file)
    assert not ends.disk.exists("/d0/t-0") and line(ends, LOG_STARTS) == 6
    cluster.create_topic(topic_id=NAMESAKE)
    cluster.start(3)
    cluster.run_until(lambda: cluster.nodes[1].replicas[NAMESAKE, 0].core.is_leader)
    cluster.produce(1, *"abcdefghi", topic_id=NAMESAKE)
    cluster.run_until(lambda: len(ends.log_values(NAMESAKE)) == 9)
    assert [start_of(node, NAMESAKE) for node in cluster.nodes.values()] == [0, 0, 0]
    for node in cluster.nodes.values():
        node.cut_power()
    for node_id in cluster.nodes:
        cluster.start(node_id)
    cluster.run_for(1_000)
    assert ends.log_values(NAMESAKE) == list("abcdefghi") and start_of(ends, NAMESAKE) == 0


@rule("storage 10.2")
def test_high_watermarks_of_logs_that_are_not_open_yet_stay_noted() -> None:
    """A start opens its logs one by one, and the checkpoint comes while most of them wait."""
    cluster = led_cluster(partitions=MANY)
    for index in range(MANY):
        cluster.produce(1, "a", "b", index=index)
    cluster.run_for(2_000)
    node = cluster.nodes[3]
    assert [line(node, HIGH_WATERMARKS, index) for index in range(MANY)] == [2] * MANY
    cluster.kill(3)
    slow = {f"/d0/t-{index}" for index in range(1, MANY)}
    seen: list[list[int]] = []

    def note(operation: Operation) -> Fault | None:
        if operation.kind == "rename" and HIGH_WATERMARKS in operation.path:
            node.disk.faults = lambda _: None  # looking is an operation, too
            content = node.disk.read_bytes(operation.path).decode()
            node.disk.faults = note
            seen.append([int(text.split(" ")[2]) for text in content.splitlines()[2:]])
        return None

    latency = node.disk.latency
    node.disk.latency = lambda operation: (
        200 * NS_PER_MS if operation.kind == "list" and operation.path in slow else latency(operation)
    )
    node.disk.faults = note
    cluster.start(3)
    cluster.produce(1, "c", acks=1)
    cluster.run_until(lambda: bool(seen))
    assert any(replica.log is None for replica in node.replicas.values()), "all logs were open by then"
    assert sorted(seen[0]) == [2] * (MANY - 1) + [3]


async def _delete_records(node: Node, offset: int) -> int:
    return await node.data_plane.delete_path.delete(TOPIC_ID, 0, offset, 5_000)
