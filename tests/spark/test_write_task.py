"""A task of a write: what it hands to its producer, what it tells the driver, and when it is not to be repeated."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from quorumlog.client.batches.delivery import DeliveredRange
from quorumlog.client.errors import ConfigError, DeliveryTimeout
from quorumlog.spark.format.source import DefaultSource
from quorumlog.spark.write.sending.message import TOLD, Span, Spans, TaskDone, sum_of
from quorumlog.spark.write.sending.task import send_rows
from quorumlog.spark.write.sending.topics import RowRefused
from quorumlog.spark.write.sink import WriteRefused, refuse_if_asked, tell_what_stays

VALUES = StructType([StructField("value", StringType())])
OPTIONS = {"bootstrap.servers": "127.0.0.1:1", "topic": "orders", "delivery": "at-least-once"}


class Sender:
    """Keeps what is queued. fails: raised at the end."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.sent = Spans()
        self.queued: list[tuple[str, int, int]] = []  # topic, rows, partition of those without a key
        self._fails = fails

    def partition_count(self, topic: str) -> int:
        if topic == "missing":
            raise RowRefused("topic 'missing' does not exist")
        return 4

    def queue(self, topic: str, rows: Any, keyless: int) -> None:
        self.queued.append((topic, rows.num_rows, keyless))

    def finish(self) -> None:
        if self._fails is not None:
            raise self._fails
        for topic, rows, keyless in self.queued:
            self.sent.took([part(topic, keyless, 0, rows)])


def part(topic: str, partition: int, base: int, count: int) -> DeliveredRange:
    return DeliveredRange(topic=topic, partition=partition, base_offset=base, count=count, may_be_duplicated=False)


def batch(rows: int, **columns: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([b"v"] * rows, pa.binary()), **columns})


def send(batches: list[pa.RecordBatch], sender: Sender, topic: str = "orders", seed: int = 1) -> TaskDone:
    return send_rows(batches, topic, sender, random.Random(seed))


def test_rows_without_a_key_go_to_one_partition_of_each_batch() -> None:
    sender = Sender()
    done = send([batch(10)] * 8, sender)
    turns = [keyless for _, _, keyless in sender.queued]
    assert turns == [(turns[0] + number) % 4 for number in range(8)]
    assert len({send_first(seed) for seed in range(30)}) == 4, "each task begins at random"
    assert (done.sent.rows, done.refusal) == (80, "")


def send_first(seed: int) -> int:
    sender = Sender()
    send([batch(1)], sender, seed=seed)
    return sender.queued[0][2]


def test_no_rows_and_batches_without_rows() -> None:
    for batches in ([], [batch(0)]):
        sender = Sender()
        assert send(batches, sender) == TaskDone(Spans()) and sender.queued == []


def test_a_refused_row_ends_the_task_and_nothing_of_its_batch_is_queued() -> None:
    wrong = batch(2, topic=["refunds", "orders"], partition=pa.array([0, 4], pa.int32()))
    sender = Sender()
    done = send([batch(3, topic=["orders"] * 3), wrong, batch(1, topic=["orders"])], sender, topic="")
    assert [rows for _, rows, _ in sender.queued] == [3]
    assert done.refusal.startswith("topic 'orders' has 4 partitions, 0 to 3, and a row names partition 4")
    assert send([batch(1)], Sender(), topic="missing").refusal == "topic 'missing' does not exist"


def test_what_came_before_a_refused_row_is_sent_and_told() -> None:
    wrong = batch(1, partition=pa.array([4], pa.int32()))
    done = send([batch(3), batch(5), wrong], Sender())
    assert (done.sent.rows, done.all_told) == (8, True)
    lost = send([batch(3), wrong], Sender(DeliveryTimeout("late", outcome_unknown=True)))
    assert lost.refusal.startswith("topic 'orders' has 4 partitions"), "no repetition makes the row better"
    assert (lost.sent.rows, lost.all_told) == (0, False)
    assert not send([batch(3)], Sender(RowRefused("a leader refuses it"))).all_told, "others may be in the log"
    with pytest.warns(UserWarning, match="; 1 tasks did not say all that they have sent. If it is repeated, what was"):
        tell_what_stays([lost, done], "batch 7")


def test_a_row_that_is_too_large_is_a_refusal_and_a_fault_of_the_cluster_is_none() -> None:
    assert send([batch(1)], Sender(RowRefused("a record of 9 bytes"))).refusal == "a record of 9 bytes"
    with pytest.raises(DeliveryTimeout):
        send([batch(1)], Sender(DeliveryTimeout("late", outcome_unknown=True)))


def test_spans_grow_by_partition_and_not_by_rows() -> None:
    spans = Spans()
    spans.took([part("a", 0, 10, 5), part("a", 0, 30, 5), part("b", 1, 7, 1)])
    assert spans.by_partition == {("a", 0): Span(10, 10, 35), ("b", 1): Span(1, 7, 8)}
    other = Spans()
    other.took([part("a", 0, 3, 1)])
    total = sum_of([TaskDone(spans), None, TaskDone(other, "refused")])
    assert total.by_partition == {("a", 0): Span(11, 3, 35), ("b", 1): Span(1, 7, 8)}
    assert spans.by_partition["a", 0] == Span(10, 10, 35), "a message is not changed"
    assert str(total) == "a-0 11 rows at offsets 3 to 34, b-1 1 rows at offsets 7 to 7"
    many = Spans()
    many.took(part("a", number, 0, 1) for number in range(TOLD + 3))
    assert str(many).endswith("and 3 more partitions")


def test_offsets_that_nobody_knows_are_not_told() -> None:
    """Of acks=0, and of a batch that the leader had already."""
    spans = Spans()
    spans.took([part("a", 0, -1, 5)])
    assert str(spans) == "a-0 5 rows at unknown offsets"
    spans.took([part("a", 0, 30, 5), part("b", 0, 7, 2), part("b", 0, -1, 2)])
    assert str(spans) == "a-0 10 rows at unknown offsets, b-0 4 rows at unknown offsets"
    assert str(sum_of([TaskDone(spans), TaskDone(spans)])).startswith("a-0 20 rows at unknown offsets")


def test_the_driver_fails_a_batch_with_a_refused_row() -> None:
    good = TaskDone(Spans())
    refuse_if_asked([good, None, good], "batch 7")
    with pytest.raises(WriteRefused, match="batch 7: 1 of 2 tasks refused a row: topic 'a' has"):
        refuse_if_asked([good, TaskDone(Spans(), "topic 'a' has ...")], "batch 7")


def test_an_abort_says_what_stays() -> None:
    spans = Spans()
    spans.took([part("a", 0, 10, 5)])
    known = "batch 7 failed: 5 of its rows stay in the log .a-0 5 rows at offsets 10 to 14"
    unknown = "; 1 tasks did not say all that they have sent. If it is repeated, what was sent is there twice"
    with pytest.warns(UserWarning, match=f"{known}.*{unknown}"):
        tell_what_stays([TaskDone(spans), None], "batch 7")
    with pytest.warns(UserWarning, match="batch 7 failed: no row is known to be in the log$"):
        tell_what_stays([], "batch 7")


def test_modes() -> None:
    source = DefaultSource(OPTIONS)
    with pytest.raises(ConfigError, match=r"mode overwrite is refused: a log only grows. Say .mode\(\"append\"\)"):
        source.writer(VALUES, True)
    source.writer(VALUES, False)
    source.streamWriter(VALUES, True)  # output mode complete: each result is appended, as by Spark's own sink


def test_acks_that_lose_rows_are_told() -> None:
    with pytest.warns(UserWarning, match="kafka.acks=1: rows are lost where a leader dies"):
        DefaultSource({**OPTIONS, "kafka.acks": "1"}).writer(VALUES, False)
    with warnings.catch_warnings(action="error"):
        DefaultSource(OPTIONS).writer(VALUES, False)
