"""Plans a batch read. Pure. The offsets are fixed here, once; every task reads a range of one partition.

Rules: the ranges of a plan never overlap, and cover everything requested except lost offsets. An offset is lost if it
was requested by number and lies outside the log: below its start (retention) or beyond its end (the topic was created
again, or truncated). A gap between two offsets inside the log is never a loss. Source: Spark's Kafka guide.

Then the ranges are cut into more tasks. The arithmetic is that of Spark's Kafka source (its options minPartitions and
maxRecordsPerPartition), so that the same options give the same number of tasks: a range that is small beside the others
stays whole, and is left out of the proportion by which the others are cut. Cuts by bytes (maxBytesPerPartition, our
own) lie between batches, so that no two tasks decode the same one; they come before the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from quorumlog.client.administration.ranges import RangeQuery
from quorumlog.client.cluster.metadata_cache import LeaderPlace, TopicLife
from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.ids import NO_EPOCH, Epoch, Offset, TopicPartition, Uuid
from quorumlog.messages.fetch import OffsetRange
from quorumlog.spark.read.options import ReadOptions
from quorumlog.spark.read.places import Place, TimePlace

NOT_THERE = "are not in the log"  # in every text of a loss
SKIP_HINT = "set failOnDataLoss=false to read the remaining records"


class DataLoss(QuorumlogError):
    """Requested offsets are not in the log. start, end: the lost ones; end is exclusive, and -1 if nobody knows it."""

    def __init__(self, topic: str, partition: int, start: Offset, end: Offset, why: str) -> None:
        super().__init__(f"{lost_text(topic, partition, start, end, why)}; {SKIP_HINT}")
        self.topic, self.partition, self.start, self.end, self.why = topic, partition, start, end, why


def lost_text(topic: str, partition: int, start: Offset, end: Offset, why: str) -> str:
    which = f"offsets from {start} on" if end < 0 else f"{end - start} offsets from {start} to {end} (exclusive)"
    return f"{topic}-{partition}: {which} {NOT_THERE}: {why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpan:
    """The readable offsets of a partition. start: log start offset. end: high watermark, exclusive.

    metadata_offset: exclusive end of metadata that name this id; -1 if unknown. end_epoch: the leader's, at the end.
    leader: None: unknown.
    """

    topic: str
    topic_id: Uuid
    partition: int
    start: Offset
    end: Offset
    metadata_offset: Offset = -1
    end_epoch: Epoch = NO_EPOCH
    leader: LeaderPlace | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """One task. end: exclusive; start < end. topic_id, metadata_offset: as in LogSpan.

    start_epoch: the leader's when the records before the start were read; by it a leader tells whether they are still
    in the log. leader: when a batch of a stream was planned, so just now: it is asked first, and
    nobody is asked for metadata; None: metadata are asked for.
    """

    topic: str
    topic_id: Uuid
    partition: int
    start: Offset
    end: Offset
    metadata_offset: Offset = -1
    start_epoch: Epoch = NO_EPOCH
    leader: LeaderPlace | None = field(default=None, compare=False)

    @property
    def life(self) -> TopicLife:
        return TopicLife(self.topic_id, self.metadata_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """losses: what will not be read, as messages for the user."""

    ranges: tuple[PartitionRange, ...]
    losses: tuple[str, ...]


def plan(spans: Sequence[LogSpan], starting: Place, ending: Place, *, fail_on_data_loss: bool) -> Plan:
    """One range per partition that has records to read, sorted by topic and partition. Raises DataLoss, ConfigError."""
    check_named("startingOffsets", starting, spans)
    check_named("endingOffsets", ending, spans)
    ranges: list[PartitionRange] = []
    losses: list[str] = []
    for span in sorted(spans, key=lambda span: (span.topic, span.partition)):
        start, end = resolve(starting, span), resolve(ending, span)
        if start > end and _number(starting, span) >= 0 and _number(ending, span) >= 0:
            raise ConfigError(f"{span.topic}-{span.partition} would start at {start}, after its end at {end}")
        for loss in _losses(span, start, end):
            if fail_on_data_loss:
                raise loss
            losses.append(lost_text(loss.topic, loss.partition, loss.start, loss.end, loss.why))
        start, end = max(start, span.start), min(end, span.end)
        if start < end:
            ranges.append(
                PartitionRange(
                    topic=span.topic,
                    topic_id=span.topic_id,
                    partition=span.partition,
                    start=start,
                    end=end,
                    metadata_offset=span.metadata_offset,
                )
            )
    return Plan(ranges=tuple(ranges), losses=tuple(losses))


def times_of(place: TimePlace, spans: Sequence[LogSpan]) -> dict[TopicPartition, int]:
    """What to look up: the time in ms of each partition that is read. Raises ConfigError, as for offsets."""
    if not isinstance(place.times_ms, int):
        check_named(place.option, place.times_ms, spans)
    return {(span.topic, span.partition): place.time_of((span.topic, span.partition)) for span in spans}


def found_by_time(
    place: TimePlace, spans: Sequence[LogSpan], found: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    """The offsets to use. found: the first offset at or after its partition's time; -1: there is none.

    Raises ConfigError, which names every partition without one, unless these are at their ends.
    """
    if not place.latest_if_none:
        missing = [f"{s.topic}-{s.partition}" for s in spans if found[s.topic, s.partition] < 0]
        if missing:
            raise ConfigError(
                f"{place.option}: no record at or after the time in {', '.join(missing)}; "
                "set startingOffsetsByTimestampStrategy=latest to begin at the end of these"
            )
    ends = {(span.topic, span.partition): span.end for span in spans}
    return {key: ends[key] if found[key] < 0 else min(found[key], ends[key]) for key in ends}


def _losses(span: LogSpan, start: Offset, end: Offset) -> Iterable[DataLoss]:
    if start < span.start:
        why = f"the log starts at {span.start}, older records were deleted"
        yield DataLoss(span.topic, span.partition, start, min(span.start, max(start, end)), why)
    reached = max(start, end)
    if reached > span.end:
        why = f"the log ends at {span.end}; was the topic deleted and created again?"
        yield DataLoss(span.topic, span.partition, max(span.end, span.start), reached, why)


def _number(place: Place, span: LogSpan) -> int:
    """The number that the user gave: an offset, EARLIEST or LATEST."""
    return place if isinstance(place, int) else place[span.topic, span.partition]


def resolve(place: Place, span: LogSpan) -> Offset:
    """The offset of this place in a partition, which the place names if it is no number for all."""
    number = _number(place, span)
    return {EARLIEST: span.start, LATEST: span.end}.get(number, number)


def check_named(option: str, place: Place, spans: Sequence[LogSpan]) -> None:
    """Offsets by partition must name exactly the partitions that are read, so that none gets a silent default."""
    if isinstance(place, int):
        return
    existing = sorted((span.topic, span.partition) for span in spans)
    missing = [f"{topic}-{partition}" for topic, partition in existing if (topic, partition) not in place]
    unknown = [f"{topic}-{partition}" for topic, partition in sorted(place) if (topic, partition) not in existing]
    if missing:
        raise ConfigError(f"{option} leaves out {', '.join(missing)}; use -2 for earliest, -1 for latest")
    if unknown:
        raise ConfigError(f"{option} names {', '.join(unknown)}, which are not read")


DescribedLog = Mapping[TopicPartition, Sequence[OffsetRange]]
"""Of each partition, pieces in order that meet between batches, with their bytes."""


class Logs(Protocol):
    """What a plan asks: a cluster (`cluster.OpenCluster`), or files (`files.LogFiles`)."""

    def spans(self) -> list[LogSpan]: ...

    def place(self, place: Place | TimePlace, spans: list[LogSpan]) -> Place: ...

    def ranges(self, option: str, wanted: Mapping[TopicPartition, RangeQuery]) -> DescribedLog: ...

    def close(self) -> None: ...


def split(ranges: Sequence[PartitionRange], *, min_partitions: int, max_records: int) -> list[PartitionRange]:
    """Ranges that cover the same offsets in the same order, none of them empty.

    max_records: the most offsets of one range; 0: no limit. min_partitions: at least so many ranges, where there are
    as many offsets; 0: as they are.
    """
    whole = [part for part in ranges if part.end > part.start]
    if max_records:
        whole = [piece for part in whole for piece in _cut(part, -(-_size(part) // max_records))]
    if len(whole) >= min_partitions:
        return whole
    total = sum(map(_size, whole))
    small = [part for part in whole if _share(part, total, min_partitions) == 1]
    rest = total - sum(map(_size, small))
    wanted = max(min_partitions - len(small), 1)
    kept = set(map(id, small))
    return [piece for part in whole for piece in _cut(part, 1 if id(part) in kept else _share(part, rest, wanted))]


def tasks_of(
    ranges: Sequence[PartitionRange],
    options: ReadOptions,
    describe: Callable[[str, Mapping[TopicPartition, RangeQuery]], DescribedLog],
) -> list[PartitionRange]:
    """The ranges of a plan as the options cut them. describe: as `streaming.StreamCluster.ranges`."""
    max_bytes = options.max_bytes_per_partition
    if max_bytes and ranges:
        wanted = {(part.topic, part.partition): RangeQuery(part.start, part.end, max_bytes) for part in ranges}
        ranges = split_by_bytes(ranges, describe("maxBytesPerPartition", wanted), max_bytes)
    return split(ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition)


def split_by_bytes(ranges: Sequence[PartitionRange], described: DescribedLog, max_bytes: int) -> list[PartitionRange]:
    """Ranges that cover the same offsets in the same order, each of at most max_bytes where the log can be cut so."""
    return [piece for part in ranges for piece in _by_bytes(part, described[part.topic, part.partition], max_bytes)]


def bytes_in(described: Iterable[OffsetRange]) -> int:
    return sum(one.size_bytes for one in described)


def end_within(described: Sequence[OffsetRange], max_bytes: int) -> Offset:
    """Where the last piece ends with which there are no more bytes than this; the first one's end at least."""
    end, size = described[0].end_offset, described[0].size_bytes
    for one in described[1:]:
        size += one.size_bytes
        if size > max_bytes:
            break
        end = one.end_offset
    return end


def _by_bytes(part: PartitionRange, described: Iterable[OffsetRange], max_bytes: int) -> Iterable[PartitionRange]:
    start, size = part.start, 0
    for one in described:
        if size + one.size_bytes > max_bytes and start < one.start_offset < part.end:
            yield _piece(part, start, one.start_offset)
            start, size = one.start_offset, 0
        size += one.size_bytes
    yield _piece(part, start, part.end)


def _size(part: PartitionRange) -> int:
    return part.end - part.start


def _share(part: PartitionRange, total: int, pieces: int) -> int:
    """How many of the pieces are this range's, in proportion to its size; at least one."""
    return max(int(_size(part) / total * pieces + 0.5), 1)


def _cut(part: PartitionRange, pieces: int) -> Iterable[PartitionRange]:
    """Pieces of nearly equal size. A range with fewer offsets than that gives one piece for each of them."""
    start, left = part.start, min(pieces, _size(part))
    while left:
        end = start + (part.end - start) // left
        yield _piece(part, start, end)
        start, left = end, left - 1


def _piece(part: PartitionRange, start: Offset, end: Offset) -> PartitionRange:
    """The epoch at the start is known of the first one."""
    return replace(part, start=start, end=end, start_epoch=part.start_epoch if start == part.start else NO_EPOCH)
