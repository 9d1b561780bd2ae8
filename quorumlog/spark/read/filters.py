"""What Spark's filters say of where their rows can be: in which partitions, at which offsets, from which time on.

Only narrows: Spark evaluates every filter again, so what is not understood here costs time and no row. Pure. Spark
gives the filters of a WHERE that are joined by AND; one that casts a column is none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from quorumlog.ids import NO_EPOCH, Offset
from quorumlog.spark.read.planning import PartitionRange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """Where every row lies that the filters let through. None: anywhere.

    since_ms: no row is older; since 1970. keys: as the column has them, typed.
    """

    topics: frozenset[Any] | None = None
    partitions: frozenset[Any] | None = None
    start: Offset = 0
    end: Offset | None = None  # exclusive
    since_ms: int | None = None
    keys: frozenset[Any] | None = None

    def ranges(self, planned: Iterable[PartitionRange]) -> Iterator[PartitionRange]:
        """What is left of a plan: by topic, partition and offset."""
        for part in planned:
            if self.topics is not None and part.topic not in self.topics:
                continue
            if self.partitions is not None and part.partition not in self.partitions:
                continue
            yield from cut(part, self.start, part.end if self.end is None else self.end)


def cut(part: PartitionRange, start: Offset, end: Offset) -> Iterator[PartitionRange]:
    """The part of a range that lies from `start` to `end`, if there is one."""
    first, stop = max(part.start, start), min(part.end, end)
    if first < stop:
        epoch = part.start_epoch if first == part.start else NO_EPOCH
        yield replace(part, start=first, end=stop, start_epoch=epoch)


def narrowing_of(filters: Sequence[Filter]) -> Narrowing:
    """Of filters that all hold."""
    found = Narrowing()
    for one in filters:
        found = _narrowed(found, one)
    return found


def _narrowed(found: Narrowing, one: Filter) -> Narrowing:
    path: tuple[str, ...] = getattr(one, "attribute", ())  # Not has none
    column = path[0] if len(path) == 1 else ""
    if isinstance(one, EqualTo | EqualNullSafe):
        values = [one.value]
    elif isinstance(one, In):
        values = [value for value in one.value if value is not None]  # no row equals null
    elif isinstance(one, GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        return _bounded(found, column, one)
    else:
        return found
    if not values or any(value is None for value in values):
        return found
    if column == "topic":
        return replace(found, topics=_both(found.topics, values))
    if column == "partition":
        return replace(found, partitions=_both(found.partitions, values))
    if column == "key":
        return replace(found, keys=_both(found.keys, values))
    if column == "offset" and all(isinstance(value, int) for value in values):
        return _offsets(found, min(values), max(values) + 1)
    if column == "timestamp":
        return _since(found, min(values))
    return found


def _both(before: frozenset[Any] | None, values: Iterable[Any]) -> frozenset[Any]:
    return frozenset(values) if before is None else before & frozenset(values)


def _bounded(found: Narrowing, column: str, one: Any) -> Narrowing:
    if one.value is None:
        return found
    if column == "timestamp" and isinstance(one, GreaterThan | GreaterThanOrEqual):
        return _since(found, one.value, is_behind=isinstance(one, GreaterThan))
    if column == "offset" and isinstance(one.value, int):
        if isinstance(one, GreaterThan | GreaterThanOrEqual):
            return _offsets(found, one.value + isinstance(one, GreaterThan), None)
        return _offsets(found, 0, one.value + isinstance(one, LessThanOrEqual))
    return found


def _offsets(found: Narrowing, start: Offset, end: Offset | None) -> Narrowing:
    ends = [one for one in (found.end, end) if one is not None]
    return replace(found, start=max(found.start, start), end=min(ends) if ends else None)


def _since(found: Narrowing, time: Any, *, is_behind: bool = False) -> Narrowing:
    """Records have whole milliseconds. -1, for none, is a time of 1969. is_behind: no row is of this time."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        return found
    since_ms = (time - _EPOCH) // _MILLISECOND + 1 if is_behind else -((_EPOCH - time) // _MILLISECOND)
    return found if since_ms < 0 else replace(found, since_ms=max(since_ms, found.since_ms or 0))
