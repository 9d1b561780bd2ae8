"""Cuts the ranges of a plan into more tasks. Pure.

The arithmetic is that of Spark's Kafka source (its options minPartitions and maxRecordsPerPartition), so that the same
options give the same number of tasks: a range that is small beside the others stays whole, and is left out of the
proportion by which the others are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from quorumlog.ids import NO_EPOCH
from quorumlog.spark.planning import PartitionRange


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
        yield replace(part, start=start, end=end, start_epoch=part.start_epoch if start == part.start else NO_EPOCH)
        start, left = end, left - 1
