"""Cuts the ranges of a plan into more tasks. Pure.

The arithmetic is that of Spark's Kafka source (its options minPartitions and maxRecordsPerPartition), so that the same
options give the same number of tasks: a range that is small beside the others stays whole, and is left out of the
proportion by which the others are cut. Cuts by bytes (maxBytesPerPartition, our own) lie between batches, so that no
two tasks decode the same one; they come before the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from quorumlog.client.fetch_position import TopicPartition
from quorumlog.client.ranges import RangeQuery
from quorumlog.ids import NO_EPOCH, Offset
from quorumlog.messages.fetch import OffsetRange
from quorumlog.spark.options import ReadOptions
from quorumlog.spark.places import Place, TimePlace
from quorumlog.spark.planning import LogSpan, PartitionRange

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
