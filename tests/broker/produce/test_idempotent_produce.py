"""Batches of idempotent producers on simulated machines: stored once, in order, whichever broker leads and whatever
waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, fail_writes_of, values_of

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.records import Record, encode_batch
from quorumlog.records.format.batch import headers
from quorumlog_broker.produce.pending_append import AppendResult
from quorumlog_storage.producers.producer_state import ProducerEntry
from tests.rules import rule

PRODUCER = 42
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def numbered(sequence: int, *values: str, epoch: int = 0, producer_id: int = PRODUCER) -> bytes:
    records = [Record(n, 1_700_000_000_000, None, value.encode(), ()) for n, value in enumerate(values)]
    return encode_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def led_cluster(**topic: Any) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(**topic)
    cluster.wait_led(1)
    return cluster


def refused(cluster: ReplicaCluster, node: int, records: bytes, **options: int) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        cluster.produce_batch(node, records, **options)
    return caught.value.code


def entries(node: Node) -> list[tuple[int, ProducerEntry]]:
    log = node.replicas[TOPIC_ID, 0].log
    assert log is not None and log.producers is not None
    return list(log.producers.states.entries.items())


def queued(node: Node) -> int:
    return len(node.replicas[TOPIC_ID, 0].sequences)


@rule("storage 4.2", "log 3.8")
@pytest.mark.parametrize("acks", [-1, 1, 0])
def test_a_repeated_batch_is_answered_with_its_first_offset(acks: int) -> None:
    cluster = led_cluster()
    assert cluster.produce_batch(1, numbered(0, "a", "b"), acks=acks) == 0
    assert cluster.produce_batch(1, numbered(2, "c"), acks=acks) == 2
    assert cluster.produce_batch(1, numbered(0, "a", "b"), acks=acks) == 0
    assert cluster.produce_batch(1, numbered(2, "c"), acks=acks) == 2
    assert cluster.nodes[1].log_values() == ["a", "b", "c"]
    assert queued(cluster.nodes[1]) == 0


@rule("storage 4.3")
def test_what_is_out_of_order_or_of_an_old_epoch_is_not_appended() -> None:
    cluster = led_cluster()
    cluster.produce_batch(1, numbered(0, "a"))
    assert refused(cluster, 1, numbered(2, "c")) is OUT_OF_ORDER
    assert refused(cluster, 1, numbered(1, "x", epoch=1)) is OUT_OF_ORDER
    cluster.produce_batch(1, numbered(0, "b", epoch=1))
    assert refused(cluster, 1, numbered(1, "x")) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(cluster, 1, numbered(1, "x", epoch=1) + numbered(2, "y", epoch=1)) is ErrorCode.INVALID_RECORD
    assert cluster.nodes[1].log_values() == ["a", "b"]
    assert cluster.produce_batch(1, numbered(1, "c", epoch=1)) == 2


def append_all(node: Node, batches: list[bytes], *, acks: int = -1, timeout_ms: int = 5_000) -> list[int | ErrorCode]:
    """Queue all before any is written. Returns the answer to each: a base offset or an error."""

    async def append() -> list[int | ErrorCode]:
        pending: list[Any] = []
        for records in batches:
            try:
                pending.append(node.produce_path.append(TOPIC_ID, 0, records, acks=acks, timeout_ms=timeout_ms))
            except ApiError as error:
                pending.append(error)
        answers: list[int | ErrorCode] = []
        for one in pending:
            try:
                if isinstance(one, ApiError):
                    raise one
                result: AppendResult = await one
                answers.append(result.base_offset)
            except ApiError as error:
                answers.append(error.code)
        return answers

    return node.run(append())


@rule("storage 4.4", "log 3.8")
@pytest.mark.parametrize("acks", [-1, 1])
def test_pipelined_batches_are_judged_in_their_order_before_any_is_written(acks: int) -> None:
    cluster = led_cluster()
    batches = [numbered(n, str(n)) for n in range(5)]
    asked = [*batches, batches[0], batches[4], numbered(6, "gap"), numbered(5, "5"), batches[0], batches[1]]
    answers = append_all(cluster.nodes[1], asked, acks=acks)
    assert answers == [0, 1, 2, 3, 4, 0, 4, OUT_OF_ORDER, 5, OUT_OF_ORDER, 1]
    assert cluster.nodes[1].log_values() == [str(n) for n in range(6)]
    assert queued(cluster.nodes[1]) == 0


def test_a_writer_that_is_faster_than_the_loop_makes_it_forget_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer's thread may note a batch before the call that queued it returns."""
    cluster = led_cluster()
    for number in range(4):
        cluster.produce_batch(1, numbered(number, str(number)))
    node = cluster.nodes[1]
    replica = node.replicas[TOPIC_ID, 0]
    assert replica.queue is not None and replica.log is not None
    queue_append = replica.queue.append

    def append(log: Any, batches: Any, **answers: Any) -> None:
        log.producers.states.note(batches[0])
        queue_append(log, batches, **answers)

    monkeypatch.setattr(replica.queue, "append", append)
    node.produce_path.append(TOPIC_ID, 0, numbered(4, "4"), acks=1, timeout_ms=5_000)
    repeated = replica.sequences.check(replica.log, headers(numbered(0, "0")))
    assert repeated is not None and repeated.base_offset == 0


def test_a_batch_that_the_queue_refused_is_new_when_it_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = led_cluster()
    cluster.produce_batch(1, numbered(0, "a"))
    node = cluster.nodes[1]
    replica = node.replicas[TOPIC_ID, 0]
    assert replica.queue is not None

    def refuse(*_: Any, **__: Any) -> None:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "full")

    with monkeypatch.context() as patched:
        patched.setattr(replica.queue, "append", refuse)
        assert refused(cluster, 1, numbered(1, "b")) is ErrorCode.KAFKA_STORAGE_ERROR
    assert queued(node) == 0
    assert cluster.produce_batch(1, numbered(1, "b")) == 1
    assert node.log_values() == ["a", "b"]


def test_a_repetition_waits_for_the_commit_of_the_first() -> None:
    cluster = led_cluster(min_insync_replicas="2")
    cluster.produce_batch(1, numbered(0, "a"))
    for follower in (2, 3):
        cluster.kill(follower)
    assert refused(cluster, 1, numbered(1, "b"), timeout_ms=50) is ErrorCode.REQUEST_TIMED_OUT
    assert refused(cluster, 1, numbered(1, "b"), timeout_ms=50) is ErrorCode.REQUEST_TIMED_OUT
    assert cluster.core(1).high_watermark == 1
    answers: list[int] = []

    async def repeat() -> None:
        result = await cluster.nodes[1].produce_path.append(TOPIC_ID, 0, numbered(1, "b"), acks=-1, timeout_ms=30_000)
        answers.append(result.base_offset)

    cluster.nodes[1].loop.deliver(lambda: asyncio.ensure_future(repeat()))
    cluster.run_for(100)
    assert answers == []
    cluster.start(2)
    cluster.run_until(lambda: bool(answers))
    assert answers == [1] and cluster.core(1).high_watermark == 2
    assert cluster.nodes[1].log_values() == ["a", "b"]


def test_a_new_leader_knows_what_the_old_one_knew() -> None:
    cluster = led_cluster()
    for n in range(7):
        cluster.produce_batch(1, numbered(n, str(n)))
    cluster.produce_batch(1, numbered(9, "other", producer_id=43))
    known = entries(cluster.nodes[1])
    assert [entries(cluster.nodes[node]) for node in (2, 3)] == [known, known]
    cluster.kill(1)
    cluster.elect(2, (2, 3))
    cluster.wait_led(2)
    assert cluster.produce_batch(2, numbered(3, "3")) == 3
    assert refused(cluster, 2, numbered(1, "1")) is OUT_OF_ORDER
    assert cluster.produce_batch(2, numbered(7, "7")) == 8
    assert cluster.nodes[2].log_values() == [*(str(n) for n in range(7)), "other", "7"]


def test_what_a_truncation_took_may_be_written_again() -> None:
    cluster = led_cluster()
    cluster.produce_batch(1, numbered(0, "a"))
    for follower in (2, 3):
        cluster.kill(follower)
    assert refused(cluster, 1, numbered(1, "lost"), timeout_ms=20) is ErrorCode.REQUEST_TIMED_OUT
    cluster.kill(1)
    for follower in (2, 3):
        cluster.start(follower)
    cluster.elect(2, (2, 3))
    cluster.wait_led(2)
    cluster.produce_batch(2, numbered(5, "b", producer_id=43))
    cluster.start(1)
    cluster.run_until(lambda: 1 in cluster.core(2).isr_state.isr)
    assert entries(cluster.nodes[1]) == entries(cluster.nodes[2])
    cluster.elect(1, (1, 2, 3))
    cluster.wait_led(1)
    assert cluster.produce_batch(1, numbered(1, "again")) == 2
    assert cluster.nodes[1].log_values() == ["a", "b", "again"]


def test_a_power_cut_leaves_what_the_log_says() -> None:
    cluster = led_cluster(replicas=(1,), segment_bytes="1048576")
    big = "x" * 60_000
    for n in range(40):
        cluster.produce_batch(1, numbered(n, big))
    known = entries(cluster.nodes[1])
    cluster.nodes[1].cut_power()
    cluster.start(1)
    cluster.elect(1, (1,))
    cluster.wait_led(1)
    assert entries(cluster.nodes[1]) == known
    assert cluster.produce_batch(1, numbered(37, big)) == 37
    assert cluster.produce_batch(1, numbered(40, big)) == 40


def test_a_clean_restart_knows_all_five() -> None:
    cluster = led_cluster(replicas=(1,))
    for n in range(9):
        cluster.produce_batch(1, numbered(n, str(n)))
    node = cluster.nodes[1]
    assert node.run(node.data_plane.close())
    cluster.kill(1)
    cluster.start(1, clean=True)
    cluster.elect(1, (1,))
    cluster.wait_led(1)
    assert [cluster.produce_batch(1, numbered(n, str(n))) for n in range(4, 9)] == [4, 5, 6, 7, 8]


def test_a_failed_write_leaves_nothing_behind() -> None:
    cluster = led_cluster()
    cluster.produce_batch(1, numbered(0, "a"))
    fail_writes_of(cluster.nodes[1], "/d0")
    answers = append_all(cluster.nodes[1], [numbered(1, "b"), numbered(1, "b"), numbered(2, "c")])
    assert answers == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert queued(cluster.nodes[1]) == 0
    assert refused(cluster, 1, numbered(1, "b")) is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_append_time_of_a_repetition_is_the_first_ones() -> None:
    cluster = led_cluster(message_timestamp_type="LogAppendTime")
    node = cluster.nodes[1]

    async def append() -> AppendResult:
        return await node.produce_path.append(TOPIC_ID, 0, numbered(0, "a"), acks=-1, timeout_ms=5_000)

    first = node.run(append())
    cluster.run_for(1_000)
    assert node.run(append()) == first
    assert first.log_append_time_ms > 0
    cluster.commit(ConfigRecord(resource_type=2, resource_name="t", name="message.timestamp.type", value="CreateTime"))
    cluster.run_for(100)
    assert node.run(append()).log_append_time_ms == -1


def test_batches_without_sequences_are_not_checked() -> None:
    cluster = led_cluster()
    plain = numbered(-1, "x", epoch=-1, producer_id=-1)
    assert [cluster.produce_batch(1, records) for records in (plain, plain, plain)] == [0, 1, 2]
    assert entries(cluster.nodes[1]) == []
    assert values_of(bytes(cluster.fetch(1, 0).records)) == ["x"] * 3
