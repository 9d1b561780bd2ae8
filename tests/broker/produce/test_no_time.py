"""A time-out of 0 means that followers are not waited for; the leader's own disk is."""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster, batch

from quorumlog.errors import ApiError, ErrorCode
from quorumlog_broker.produce import delete_records, produce_path

TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


def led(replicas: tuple[int, ...], **config: str) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(replicas, **config)
    cluster.wait_led(1)
    return cluster


def produced(cluster: ReplicaCluster, acks: int) -> int | ErrorCode:
    try:
        return cluster.produce_batch(1, batch("a"), acks=acks, timeout_ms=0)
    except ApiError as error:
        return error.code


def deleted(cluster: ReplicaCluster, offset: int) -> int | ErrorCode:
    node = cluster.nodes[1]

    async def delete() -> int:
        return await node.data_plane.delete_path.delete(TOPIC_ID, 0, offset, 0)

    try:
        return node.run(delete())
    except ApiError as error:
        return error.code


@pytest.mark.parametrize("durability", ["synced", "replicated"])
def test_one_replica_waits_for_its_disk_alone(durability: str) -> None:
    cluster = led((1,), durability=durability)
    assert [produced(cluster, acks) for acks in (-1, 1, 0, -1)] == [0, 1, 2, 3]
    log = cluster.nodes[1].log()
    assert durability == "replicated" or log.synced_end == log.end_offset == 4
    assert deleted(cluster, 3) == 3 and cluster.nodes[1].log().start_offset == 3


@pytest.mark.parametrize("durability", ["synced", "replicated"])
def test_followers_are_not_waited_for(durability: str) -> None:
    """As in Kafka: acks=all is told that the time is over, and the records stay."""
    cluster = led((1, 2, 3), durability=durability)
    assert [produced(cluster, acks) for acks in (-1, 1, 0)] == [TIMED_OUT, 1, 2]
    cluster.run_for(1_000)
    assert cluster.core(1).high_watermark == 3
    assert deleted(cluster, 2) == TIMED_OUT
    cluster.run_for(1_000)
    assert [cluster.nodes[node].log().start_offset for node in (1, 2, 3)] == [2, 2, 2]


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_disk_that_does_not_answer_ends_the_wait(acks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce_path, "OWN_DISK_MS", 700)
    monkeypatch.setattr(delete_records, "OWN_DISK_MS", 700)
    cluster = led((1,))
    cluster.produce(1, "there")
    node = cluster.nodes[1]
    queue = node.replicas[TOPIC_ID, 0].queue
    assert queue is not None
    monkeypatch.setattr(queue, "append", lambda *_, **__: None)
    monkeypatch.setattr(queue, "run", lambda *_, **__: node.loop.create_future())
    begun_ms = node.clock.now_ms()
    assert produced(cluster, acks) == TIMED_OUT
    assert 700 <= node.clock.now_ms() - begun_ms < 900
    assert deleted(cluster, 1) == TIMED_OUT
    assert 1_400 <= node.clock.now_ms() - begun_ms < 1_800
