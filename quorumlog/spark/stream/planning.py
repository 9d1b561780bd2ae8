"""Plans the batches of a stream: where one ends, and what its tasks read. Pure.

A partition that the position does not name is new, and is read from offset 0 (Spark's rule, so that nothing is skipped
between two batches). Records that are gone are lost by name: those below the log's start, those of a topic that was
deleted, and those of one that was made again under the same name, which is told by its id.

How much of what is there a batch of a stream takes. Pure. The rules are those of Spark's Kafka source.

maxOffsetsPerTrigger is shared out in proportion to what each partition has. A partition that has records gets at least
one of them, so that a small one is not starved; a batch is therefore at most the limit plus one for each partition.
minOffsetsPerTrigger lets a batch wait until there is so much, but no longer than maxTriggerDelay. The first batch of a
run does not wait.

maxBytesPerTrigger, our own, is shared out in the same way, by what each partition has, of which no more than the limit
counts. A share ends between two batches of the log, and is at least what the index cannot cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quorumlog.ids import NO_EPOCH, Offset, TopicPartition, Uuid, show_uuid
from quorumlog.spark.read.planning import DataLoss, LogSpan, PartitionRange, Plan, lost_text
from quorumlog.spark.stream.offset import StreamOffset

Ranges = Mapping[TopicPartition, tuple[Offset, Offset]]
"""From the next offset to read to the end, which is exclusive and not below it."""


def share_out(ranges: Ranges, most: int) -> dict[TopicPartition, Offset]:
    """The end of each partition in a batch of `most` offsets."""
    total = offsets_in(ranges)
    if total <= most:
        return {key: end for key, (_, end) in ranges.items()}
    ends = {}
    for key, (start, end) in ranges.items():
        share = most * (end - start) / total
        ends[key] = min(end, start + (math.ceil(share) if share < 1 else math.floor(share)))
    return ends


def share_out_bytes(sizes: Mapping[TopicPartition, int], most: int) -> dict[TopicPartition, int] | None:
    """The bytes of each partition in a batch of `most`; None: there is not more. sizes: what each one has."""
    total = sum(sizes.values())
    if total <= most:
        return None
    counted = {key: min(size, most) for key, size in sizes.items()}
    return {key: max(most * size // sum(counted.values()), 1) for key, size in counted.items()}


def offsets_in(ranges: Ranges) -> int:
    return sum(end - start for start, end in ranges.values())


@dataclass(slots=True)
class Patience:
    """Whether a batch may wait for more. last_ms: of a monotonic clock, when the last batch was let go; None: the next
    one is the first of the run, which does not wait."""

    max_delay_ms: int
    last_ms: int | None = None

    def waits(self, there: int, least: int, now_ms: int) -> bool:
        """there: offsets that could be read now."""
        if there < least and self.last_ms is not None and now_ms - self.last_ms < self.max_delay_ms:
            return True
        self.last_ms = now_ms
        return False


Spans = Mapping[TopicPartition, LogSpan]

GONE = "the topic does not exist any more"


def by_partition(spans: Sequence[LogSpan]) -> Spans:
    return {(span.topic, span.partition): span for span in spans}


class Losses:
    """What the stream cannot read any more. Raises the first one, or collects them as texts."""

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail
        self.texts: list[str] = []

    def add(self, loss: DataLoss) -> None:
        if self._fail:
            raise loss
        self.texts.append(lost_text(loss.topic, loss.partition, loss.start, loss.end, loss.why))


def readable(begun: StreamOffset, spans: Spans, losses: Losses) -> Ranges:
    """What could be read now of each partition. Of a new one that has no records there is nothing to say.

    Nothing is new where a leader that was just elected names an end below the position, and where a broker that is
    behind does not know of a partition yet. A topic that is gone keeps its place: should it be there again under its
    id, it is read on from there, and not from its beginning.
    """
    topics = _lives(spans)
    ranges: dict[TopicPartition, tuple[Offset, Offset]] = {}
    for (topic, partition), offset in sorted(begun.offsets.items()):
        life = topics.get(topic)
        known = begun.topic_ids.get(topic, life.topic_id if life else b"")
        if life is None:
            losses.add(DataLoss(topic, partition, offset, -1, GONE))
        elif life.topic_id != known:
            losses.add(DataLoss(topic, partition, offset, -1, _made_anew(known, life.topic_id)))
            continue
        ranges[topic, partition] = (offset, offset)
    for key, span in spans.items():
        start = ranges[key][0] if key in ranges else 0
        if key in ranges or span.end > 0:
            ranges[key] = (start, max(span.end, start))
    return ranges


def moved(begun: StreamOffset, spans: Spans, ends: Mapping[TopicPartition, Offset], cluster_id: str) -> StreamOffset:
    """The position after a batch that ends there. A partition that has not moved keeps its epoch."""
    epochs, ids = {}, {}
    for key, end in ends.items():
        (topic, _), span = key, spans.get(key)
        if span is None or (begun.offsets.get(key) == end and key in begun.epochs):
            epochs[key] = begun.epochs.get(key, NO_EPOCH)
        else:
            epochs[key] = span.end_epoch
        known = begun.topic_ids.get(topic) if span is None else span.topic_id
        if known is not None:
            ids[topic] = known
    return StreamOffset(offsets=ends, cluster_id=cluster_id, topic_ids=ids, epochs=epochs)


def is_same(one: StreamOffset, other: StreamOffset) -> bool:
    """Whether nothing lies between them. The plain form has no ids to compare."""
    ids = one.topic_ids
    return one.offsets == other.offsets and all(ids.get(t, i) == i for t, i in other.topic_ids.items())


def plan_batch(start: StreamOffset, end: StreamOffset, spans: Spans, *, fail_on_data_loss: bool) -> Plan:
    """The ranges between two positions. Raises DataLoss.

    The end is a promise of the checkpoint: it is read as planned, whatever the log has grown to, and a leader whose
    high watermark still lags makes the task wait.
    """
    losses, topics = Losses(fail=fail_on_data_loss), _lives(spans)
    ranges = []
    for key, stop in sorted(end.offsets.items()):
        (topic, partition), life = key, topics.get(key[0])
        wanted = end.topic_ids.get(topic, life.topic_id if life else b"")
        is_new = start.topic_ids.get(topic, wanted) != wanted
        first = 0 if is_new else start.offsets.get(key, 0)
        if first >= stop:
            continue
        if life is None or life.topic_id != wanted:
            why = _made_anew(wanted, life.topic_id) if life else GONE
            losses.add(DataLoss(topic, partition, first, stop, why))
            continue
        log_start = spans[key].start if key in spans else first
        if first < log_start:
            why = f"the log starts at {log_start}, older records were deleted"
            losses.add(DataLoss(topic, partition, first, min(log_start, stop), why))
        if max(first, log_start) < stop:
            ranges.append(
                PartitionRange(
                    topic=topic,
                    topic_id=wanted,
                    partition=partition,
                    start=max(first, log_start),
                    end=stop,
                    metadata_offset=life.metadata_offset,
                    start_epoch=NO_EPOCH if is_new or first < log_start else start.epochs.get(key, NO_EPOCH),
                    leader=spans[key].leader if key in spans else None,
                )
            )
    return Plan(ranges=tuple(ranges), losses=tuple(losses.texts))


def _lives(spans: Spans) -> dict[str, LogSpan]:
    """By topic, one of its partitions: they have the id in common."""
    return {topic: span for (topic, _), span in spans.items()}


def _made_anew(known: Uuid, found: Uuid) -> str:
    return f"the topic was deleted and created again: its id was {show_uuid(known)} and is {show_uuid(found)}"
