"""Deletion of records on simulated machines: the log starts of leader and followers move, durably, whatever fails."""

from __future__ import annotations

import pytest
from replica_cluster import LAG_MS, TOPIC_ID, ReplicaCluster, batch

from jepsen.sim.machine.disk_faults import Fault, Operation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    NodeList,
    PartitionChangeRecord,
)
from quorumlog_broker.fetch.offset_queries import EARLIEST
from quorumlog_broker.logdirs.log_directory import Lane
from quorumlog_broker.partition.events import LogStartMoved
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE
from quorumlog_storage.directory.offset_files import LOG_STARTS
from tests.rules import rule


def filled(*values: str, **topic: object) -> ReplicaCluster:
    """A topic of three replicas, led by 1, that holds one batch."""
    cluster = ReplicaCluster()
    cluster.create_topic(**topic)  # type: ignore[arg-type]
    cluster.wait_led(1)
    cluster.produce(1, *values)
    return cluster


def delete(cluster: ReplicaCluster, offset: int, *, node_id: int = 1, timeout_ms: int = 5_000) -> int:
    node = cluster.nodes[node_id]

    async def ask() -> int:
        return await node.data_plane.delete_path.delete(TOPIC_ID, 0, offset, timeout_ms)

    return node.run(ask())


def refused(cluster: ReplicaCluster, offset: int, **options: int) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        delete(cluster, offset, **options)
    return caught.value.code


def starts(cluster: ReplicaCluster) -> list[int]:
    return [node.replicas[TOPIC_ID, 0].log.start_offset for node in cluster.nodes.values()]  # type: ignore[union-attr]


def earliest(cluster: ReplicaCluster, node_id: int) -> int:
    node = cluster.nodes[node_id]
    return node.run(node.data_plane.offset_queries.list_offset(TOPIC_ID, 0, EARLIEST)).offset


def fence(cluster: ReplicaCluster, node_id: int) -> None:
    epoch = cluster.image.brokers[node_id].broker_epoch
    cluster.commit(BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=epoch, fenced=True))


@rule("storage 8.7")
def test_records_are_gone_from_every_replica_when_the_answer_comes() -> None:
    cluster = filled("a", "b", "c", "d")
    began_ns = cluster.scheduler.now_ns
    assert delete(cluster, 2) == 2
    assert (cluster.scheduler.now_ns - began_ns) / 1e6 < 100, "followers get the start at once"
    assert starts(cluster) == [2, 2, 2] and earliest(cluster, 1) == 2
    assert cluster.fetch(1, 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert cluster.fetch(1, 2).log_start_offset == 2


def test_a_follower_whose_own_retention_was_faster_tells_its_start() -> None:
    """No record comes that would name the partition in a fetch. The leader knew the old start, for ever: a deletion was
    not acknowledged, and a follower that had left the ISR stayed outside, where too few others let records in."""
    cluster = filled("a", "b", "c", "d")
    cluster.run_until(lambda: all(cluster.core(node_id).high_watermark == 4 for node_id in (1, 2, 3)))
    follower = cluster.nodes[2]
    replica = follower.replicas[TOPIC_ID, 0]
    assert replica.queue is not None and replica.partition_log is not None
    log = replica.partition_log
    queue = replica.queue

    async def raise_start() -> None:
        start = await queue.run(lambda: log.raise_start(3), Lane.BACKGROUND)
        follower.data_plane.stepper.step(replica, LogStartMoved(start))

    follower.run(raise_start())
    cluster.run_until(lambda: starts(cluster) == [0, 3, 0])
    try:
        assert delete(cluster, 3) == 3
    except ApiError as error:
        pytest.fail(f"the leader does not know the follower's start: {error}")
    assert cluster.core(1).followers[2].log_start == 3


def test_followers_get_the_new_start_once_the_leader_has_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = filled("a", "b", "c", "d")
    node, began_ns = cluster.nodes[1], cluster.scheduler.now_ns
    queue = node.replicas[TOPIC_ID, 0].queue
    assert queue is not None
    submit = queue.directory.worker.submit
    monkeypatch.setattr(queue.directory.worker, "submit", lambda *job: node.loop.call_later(0.02, submit, *job))
    assert delete(cluster, 2) == 2
    assert (cluster.scheduler.now_ns - began_ns) / 1e6 < 100, "not with their next fetch"


@rule("storage 8.7")
def test_all_that_is_committed() -> None:
    cluster = filled("a", "b", "c")
    assert delete(cluster, -1) == 3
    assert cluster.produce(1, "d") == 3


def test_deleting_what_is_deleted_is_answered_at_once() -> None:
    cluster = filled("a", "b", "c")
    delete(cluster, 2)
    assert delete(cluster, 1) == 2 and starts(cluster) == [2, 2, 2]


REFUSALS = [
    ("past the high watermark", 4, {}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ("negative", -2, {}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ("at a follower", 1, {"node_id": 2}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
]


@rule("storage 8.7", "log 3.13")
@pytest.mark.parametrize(("offset", "options", "want"), [c[1:] for c in REFUSALS], ids=[c[0] for c in REFUSALS])
def test_refused(offset: int, options: dict[str, int], want: ErrorCode) -> None:
    cluster = filled("a", "b", "c")
    assert refused(cluster, offset, **options) is want
    assert starts(cluster) == [0, 0, 0]


@rule("storage 8.7")
def test_a_compacted_topic_keeps_its_records() -> None:
    cluster = filled("a")
    cluster.commit(
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="cleanup.policy", value="compact")
    )
    assert refused(cluster, 1) is ErrorCode.POLICY_VIOLATION


@rule("storage 8.7")
@pytest.mark.parametrize("lose", ["process", "power"])
def test_deleted_records_do_not_come_back(lose: str) -> None:
    cluster = filled("a", "b", "c", "d")
    delete(cluster, 3)
    for node_id in (1, 2, 3):
        if lose == "process":
            cluster.kill(node_id)
        else:
            cluster.nodes[node_id].cut_power()
    for node_id in (1, 2, 3):
        cluster.start(node_id)
    cluster.elect(1, (1, 2, 3))
    cluster.wait_led(1)
    assert earliest(cluster, 1) == 3
    cluster.produce(1, "e")
    assert starts(cluster) == [3, 3, 3]


def test_a_new_leader_knows_the_start() -> None:
    cluster = filled("a", "b", "c")
    delete(cluster, 2)
    cluster.elect(2, (1, 2, 3))
    cluster.wait_led(2)
    assert earliest(cluster, 2) == 2


def place(cluster: ReplicaCluster, isr: tuple[int, ...], elr: tuple[int, ...] = (), leader: int | None = None) -> None:
    cluster.commit(
        PartitionChangeRecord(
            partition=0,
            topic_id=TOPIC_ID,
            leader=leader,
            isr=NodeList(nodes=isr),
            eligible_leader_replicas=NodeList(nodes=elr),
        )
    )
    cluster.run_for(20)


def test_an_answer_does_not_wait_for_a_broker_that_is_fenced_and_may_not_lead() -> None:
    cluster = filled("a", "b", "c")
    cluster.kill(3)
    assert refused(cluster, 1, timeout_ms=300) is ErrorCode.REQUEST_TIMED_OUT
    fence(cluster, 3)
    assert refused(cluster, 1, timeout_ms=300) is ErrorCode.REQUEST_TIMED_OUT, "it is in the ISR"
    place(cluster, (1, 2))
    assert delete(cluster, 2, timeout_ms=300) == 2
    cluster.start(3)
    cluster.run_for(LAG_MS)
    assert starts(cluster) == [2, 2, 2]


@rule("kraft 9.32")
@pytest.mark.parametrize(("isr", "elr"), [((1, 2, 3), ()), ((1,), (2, 3))], ids=["of the ISR", "of the ELR"])
def test_what_was_deleted_does_not_come_back_with_a_member_that_was_away(
    isr: tuple[int, ...], elr: tuple[int, ...]
) -> None:
    cluster = filled("a", "b", "c", "d")
    cluster.kill(2)
    cluster.kill(3)
    fence(cluster, 2)
    fence(cluster, 3)
    place(cluster, isr, elr)
    try:
        deleted = delete(cluster, 2, timeout_ms=300)
    except ApiError as error:
        assert error.code is ErrorCode.REQUEST_TIMED_OUT
        deleted = 0
    cluster.kill(1)
    fence(cluster, 1)
    cluster.start(2)
    place(cluster, (2,), (1, 3), leader=2)
    cluster.wait_led(2)
    assert earliest(cluster, 2) >= deleted, "a deletion was acknowledged, and its records are back"


def test_a_waiting_deletion_fails_when_leadership_is_lost() -> None:
    cluster = filled("a", "b", "c")
    cluster.kill(3)
    node = cluster.nodes[1]

    async def ask() -> ErrorCode:
        answer = node.data_plane.delete_path.delete(TOPIC_ID, 0, 1, 60_000)
        cluster.elect(2, (1, 2))
        try:
            await answer
        except ApiError as error:
            return error.code
        return ErrorCode.NONE

    assert node.run(ask()) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@rule("storage 1.16")
def test_a_replica_that_has_nothing_begins_inside_the_batch() -> None:
    """The first batch that the follower gets contains deleted records too; it is kept whole, below the start."""
    cluster = ReplicaCluster()
    cluster.create_topic(isr=(1, 2))
    cluster.wait_led(1)
    cluster.kill(3)
    fence(cluster, 3)
    cluster.produce(1, "a", "b", "c", "d")
    delete(cluster, 2)
    cluster.start(3)
    cluster.run_for(LAG_MS)
    cluster.produce(1, "e")
    third = cluster.nodes[3].replicas[TOPIC_ID, 0]
    assert third.log is not None
    assert (third.log.start_offset, third.log.end_offset, third.log.segment_bases) == (2, 5, (0,))
    assert cluster.core(1).isr_state.isr == (1, 2, 3)
    leader = cluster.nodes[1].replicas[TOPIC_ID, 0]
    assert leader.log is not None
    read = [log.read(2, 1 << 20, upper_bound=5) for log in (leader.log, third.log)]
    assert read[0] == read[1]
    cluster.nodes[3].cut_power()
    cluster.start(3)
    cluster.run_for(LAG_MS)
    assert starts(cluster) == [2, 2, 2]


@rule("storage 11.5")
def test_the_start_is_on_disk_before_a_segment_goes() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic(internal_segment_bytes="300")
    cluster.wait_led(1)
    for _ in range(8):
        cluster.produce_batch(1, batch("x" * 200))
    done: list[tuple[str, str]] = []

    def note(operation: Operation) -> Fault | None:
        done.append((operation.kind, operation.path.rpartition("/")[2]))
        return None

    for node_id in (1, 2):
        done.clear()
        disk = cluster.nodes[node_id].disk
        disk.faults = note
        delete(cluster, 3 * node_id)
        cluster.run_for(10)
        disk.faults = lambda _: None
        noted = next(at for at, (kind, name) in enumerate(done) if kind == "rename" and name.startswith(LOG_STARTS))
        synced = next(at for at, (kind, _) in enumerate(done) if at > noted and kind == "sync_directory")
        removed = next(at for at, (kind, name) in enumerate(done) if kind == "rename" and name.endswith(".log"))
        assert noted < synced < removed
    assert starts(cluster) == [6, 6, 6]


def test_a_topic_made_again_begins_at_nothing() -> None:
    cluster = filled("a", "b", "c")
    delete(cluster, 2)
    cluster.delete_topic()
    cluster.create_topic(topic_id=bytes([8]) * 16)
    cluster.run_for(500)
    replica = cluster.nodes[1].replicas[bytes([8]) * 16, 0]
    assert replica.log is not None and replica.log.start_offset == 0
    cluster.kill(1)
    cluster.start(1)
    cluster.commit(PartitionChangeRecord(partition=0, topic_id=bytes([8]) * 16, leader=1))
    cluster.run_for(500)
    replica = cluster.nodes[1].replicas[bytes([8]) * 16, 0]
    assert replica.log is not None and replica.log.start_offset == 0


def test_a_deletion_of_nothing_is_answered_once_the_followers_have_spoken() -> None:
    """It comes before their first fetch; nothing moves for it then, but what was unknown is known."""
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.run_until(lambda: (TOPIC_ID, 0) in cluster.nodes[1].replicas and cluster.core(1).is_leader)
    assert cluster.core(1).low_watermark == -1
    assert delete(cluster, -1) == 0
