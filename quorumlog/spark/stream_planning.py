"""Plans the batches of a stream: where one ends, and what its tasks read. Pure.

A partition that the position does not name is new, and is read from offset 0 (Spark's rule, so that nothing is skipped
between two batches). Records that are gone are lost by name: those below the log's start, those of a topic that was
deleted, and those of one that was made again under the same name, which is told by its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quorumlog.client.fetch_position import TopicPartition
from quorumlog.ids import NO_EPOCH, Offset, Uuid, show_uuid
from quorumlog.spark.admission import Ranges
from quorumlog.spark.planning import DataLoss, LogSpan, PartitionRange, Plan, lost_text
from quorumlog.spark.stream_offset import StreamOffset

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
