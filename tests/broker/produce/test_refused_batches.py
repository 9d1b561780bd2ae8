"""A first batch that came too early does not lose its place to the batches behind it."""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records import Record, encode_batch
from quorumlog.records.format.batch import BatchHeader, parse_header
from quorumlog_broker.produce.refused_batches import HOLD_MS, MAX_HELD, RefusedBatches

PRODUCER = 42
NOT_LEADER = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "too early")


def numbered(sequence: int, value: str, *, producer_id: int = PRODUCER, epoch: int = 0) -> bytes:
    record = Record(0, 1_700_000_000_000, None, value.encode(), ())
    return encode_batch([record], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def header(sequence: int, producer_id: int = PRODUCER, epoch: int = 0) -> BatchHeader:
    return parse_header(numbered(sequence, "x", producer_id=producer_id, epoch=epoch))


def refusal(cluster: ReplicaCluster, records: bytes) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        cluster.produce_batch(1, records)
    return caught.value.code


@pytest.mark.parametrize(
    ("too_early", "code"),
    [("the topic is not known yet", ErrorCode.UNKNOWN_TOPIC_ID), ("the ISR is small", ErrorCode.NOT_ENOUGH_REPLICAS)],
)
def test_the_batches_behind_a_refused_first_one_wait_for_it(too_early: str, code: ErrorCode) -> None:
    """Before, the second batch was taken, and the first was out of order until its client gave it up."""
    cluster = ReplicaCluster()
    if code is ErrorCode.NOT_ENOUGH_REPLICAS:
        cluster.kill(3)
        cluster.create_topic(isr=(1, 2), min_insync_replicas="3")
        cluster.wait_led(1)
        assert refusal(cluster, numbered(0, "a")) is code, too_early
        cluster.start(3)
        cluster.run_until(lambda: cluster.core(1).isr_state.isr == (1, 2, 3) and cluster.core(1).is_leader)
    else:
        assert refusal(cluster, numbered(0, "a")) is code, too_early
        cluster.create_topic()
        cluster.wait_led(1)
    assert refusal(cluster, numbered(1, "b")) is code
    assert refusal(cluster, numbered(2, "c")) is code
    assert [cluster.produce_batch(1, numbered(number, value)) for number, value in enumerate("abc")] == [0, 1, 2]
    assert cluster.nodes[1].log_values() == ["a", "b", "c"]


def test_a_producer_that_has_given_up_the_batch_goes_on_after_a_while() -> None:
    cluster = ReplicaCluster()
    refusal(cluster, numbered(0, "a"))
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.run_for(HOLD_MS)
    assert cluster.produce_batch(1, numbered(1, "b")) == 0


def test_others_are_not_held_up() -> None:
    cluster = ReplicaCluster()
    refusal(cluster, numbered(3, "a"))
    cluster.create_topic()
    cluster.wait_led(1)
    assert cluster.produce_batch(1, numbered(4, "b", producer_id=PRODUCER + 1)) == 0
    assert cluster.produce_batch(1, numbered(9, "c", epoch=1)) == 1
    plain = numbered(-1, "d", producer_id=-1, epoch=-1)
    assert cluster.produce_batch(1, plain) == 2
    assert cluster.nodes[1].replicas[TOPIC_ID, 0].core.end_offset == 3


def test_the_lowest_refused_sequence_counts_and_the_memory_is_bounded() -> None:
    held = RefusedBatches()
    held.refused("t", 0, header(5), NOT_LEADER, 0)
    held.refused("t", 0, header(7), NOT_LEADER, 10)
    for sequence in (5, 4, 0):
        held.refuse_later("t", 0, header(sequence), 20)
    with pytest.raises(ApiError, match="too early"):
        held.refuse_later("t", 0, header(6), HOLD_MS + 9)
    held.refuse_later("t", 0, header(6), HOLD_MS + 10)
    for number in range(MAX_HELD + 5):
        held.refused("t", number, header(0), NOT_LEADER, HOLD_MS + 20)
    assert len(held) == MAX_HELD
    held.refuse_later("t", 0, header(1), HOLD_MS + 21)
    with pytest.raises(ApiError):
        held.refuse_later("t", MAX_HELD + 4, header(1), HOLD_MS + 21)


def test_bytes_that_are_no_batch_are_not_remembered() -> None:
    cluster = ReplicaCluster()
    assert refusal(cluster, b"junk") is ErrorCode.UNKNOWN_TOPIC_ID
    assert not len(cluster.nodes[1].produce_path._refused)
