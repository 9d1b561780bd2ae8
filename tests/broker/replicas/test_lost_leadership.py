"""What a broker keeps and refuses when a leadership ends: from then on another leader gives the offsets away."""

from __future__ import annotations

import asyncio

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, Offset
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse
from quorumlog.messages.metadata_records import NodeList, PartitionChangeRecord
from quorumlog.records import Record, encode_batch, headers
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.replication.fetch_position import FetchPosition
from quorumlog_broker.replication.follower import verified_batches
from quorumlog_storage.segment.batch import stamped_batches

KEY = (TOPIC_ID, 0)


def led_cluster(tail_bytes: int = 1 << 20, **topic: object) -> ReplicaCluster:
    cluster = ReplicaCluster(tail_bytes=tail_bytes)
    cluster.create_topic(**topic)  # type: ignore[arg-type]
    cluster.wait_led(1)
    return cluster


def elect_inside(cluster: ReplicaCluster, leader: int) -> None:
    """Called by the process of a node: it and all others apply the election at the end of this turn of the loop."""
    change = PartitionChangeRecord(partition=0, topic_id=TOPIC_ID, leader=leader, isr=NodeList(nodes=(1, 2, 3)))
    cluster.commit(change)


def numbered(sequence: int, value: str) -> bytes:
    """One record of producer 7."""
    record = Record(0, 1_700_000_000_000, None, value.encode(), ())
    return encode_batch([record], producer_id=7, producer_epoch=0, base_sequence=sequence)


def stamped(base: Offset, epoch: Epoch, value: str) -> bytes:
    data = batch(value)
    (stored,) = stamped_batches(data, headers(data), base, epoch)
    return b"".join(stored.parts)


# --- the old leader ---


def test_the_tail_is_dropped() -> None:
    cluster = led_cluster()
    cluster.produce(1, "a", "b")
    assert cluster.nodes[1].replicas[KEY].tail.end_offset == 2
    cluster.elect(2, (1, 2, 3))
    cluster.wait_led(2)
    assert cluster.nodes[1].replicas[KEY].tail.end_offset == -1


def test_an_append_with_acks_1_is_not_answered_as_written() -> None:
    """The new leader may not have it. Its producer must not hear that it is stored."""
    cluster = led_cluster()
    node = cluster.nodes[1]

    async def append_and_lose() -> None:
        pending = node.produce_path.append(TOPIC_ID, 0, batch("x"), acks=1, timeout_ms=5_000)
        elect_inside(cluster, 2)
        await pending

    with pytest.raises(ApiError) as caught:
        node.run(append_and_lose())
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_read_from_the_disk_that_ends_after_the_leadership_is_refused() -> None:
    """A truncation may have begun meanwhile, and other records may lie there."""
    cluster = led_cluster(tail_bytes=0)
    cluster.produce(1, "a", "b")
    node = cluster.nodes[1]

    async def read_and_lose() -> FetchPartitionResponse:
        target = FetchTarget(TOPIC_ID, FetchPartition(index=0, fetch_offset=0, max_bytes=1 << 20))
        reading = asyncio.ensure_future(
            node.fetch_path.fetch(FetchContext((target,), None), FetchParams(0, 1, 1 << 20))
        )
        await asyncio.sleep(0)  # it waits for the disk now
        elect_inside(cluster, 2)
        responses, _ = await reading
        return responses[0]

    answer = node.run(read_and_lose())
    assert (answer.error_code, bytes(answer.records)) == (ErrorCode.FENCED_LEADER_EPOCH, b"")


def test_sequences_that_were_queued_then_are_not_those_of_the_next_leadership() -> None:
    cluster = led_cluster()
    assert cluster.produce_batch(1, numbered(0, "a")) == 0
    cluster.elect(2, (1, 2, 3))
    cluster.wait_led(2)
    assert cluster.produce_batch(2, numbered(1, "b")) == 1
    cluster.elect(1, (1, 2, 3))
    cluster.wait_led(1)
    assert refusal_of(cluster, numbered(2, "c")) is None
    assert cluster.nodes[1].log_values() == ["a", "b", "c"]


def refusal_of(cluster: ReplicaCluster, records: bytes) -> str | None:
    try:
        cluster.produce_batch(1, records)
    except ApiError as error:
        return str(error)
    return None


# --- the follower ---


def answer_with(records: bytes, high_watermark: Offset = 0) -> FetchPartitionResponse:
    return FetchPartitionResponse(index=0, high_watermark=high_watermark, log_start_offset=0, records=records)


def position_of(node: Node, epoch: Epoch) -> FetchPosition:
    log = node.log()
    return FetchPosition(
        key=KEY, leader_epoch=epoch, offset=log.end_offset, last_epoch=log.last_epoch, log_start=log.start_offset
    )


@pytest.mark.parametrize("epochs_ago", [0, 1], ids=["of this leadership", "of the one before"])
def test_only_an_answer_to_a_fetch_of_this_leadership_is_taken(epochs_ago: int) -> None:
    cluster = led_cluster()
    cluster.produce(1, "a")
    cluster.elect(2, (1, 2, 3))
    cluster.wait_led(2)
    cluster.run_until(lambda: cluster.core(3).is_follower and cluster.core(3).leader == 2)
    node = cluster.nodes[3]
    epoch = cluster.core(3).leader_epoch - epochs_ago
    position = position_of(node, epoch)

    async def take() -> None:
        node.data_plane.follower.take(position, answer_with(stamped(1, epoch, "b")), lambda _: None)
        await asyncio.sleep(0.05)

    node.run(take())
    assert node.log_values() == (["a"] if epochs_ago else ["a", "b"])


def test_records_of_an_epoch_above_the_fetchs_are_not_taken() -> None:
    """Its leader was deposed while it answered: what follows must be asked for, and compared, in the new epoch."""
    records = stamped(0, 3, "a") + stamped(1, 4, "b") + stamped(2, 5, "c")
    assert [one.leader_epoch for one in verified_batches(records, 4)] == [3, 4]
    assert verified_batches(stamped(0, 5, "a"), 4) == []
