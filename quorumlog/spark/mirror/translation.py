"""Where a group that has read a partition of the source goes on in the target. Pure, but for the logs that it is given.

A partition of the source mirrors into one of the target. In each of the two lie records that were written there first,
and perhaps copies of the other's. The group goes on at the first record of the target that it has not read through the
source: the first copy whose origin it has not passed, or the first of the target's own records whose copy it has not
passed, whichever comes first; at the end if there is neither.

Origins rise in a partition, so a binary search finds the copy. A batch that was written at least once, and repeated,
puts some of them there twice: the search then ends at one of the places where they rise past the offset, and behind
each of these every later record follows. So a record may be read twice, and none is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from quorumlog.ids import Offset
from quorumlog.spark.mirror.origin import Home, Origin

FIRST_WINDOW = 64  # records looked at behind an offset, and twice as many with each step back


class Log(Protocol):
    """A partition as committed readers see it. start inclusive, end exclusive. home: of what is written here first."""

    @property
    def start(self) -> Offset: ...

    @property
    def end(self) -> Offset: ...

    @property
    def home(self) -> Home: ...

    def records(self, start: Offset, end: Offset) -> Iterator[tuple[Offset, Origin | None]]:
        """In their order. None: written here first."""


class Span(NamedTuple):
    """Offsets of a log, start inclusive, end exclusive."""

    start: Offset
    end: Offset

    def within(self, log: Log) -> Span:
        start = Offset(max(self.start, log.start))
        return Span(start, Offset(max(start, min(self.end, log.end))))


def translate(offset: Offset, source: Log, target: Log, copies: Span, homes: Span | None) -> Offset | None:
    """The next offset to read in the target. offset: the next to read in the source.

    copies: where in the target copies of the source's records may lie. homes: where in the source copies of the
    target's may lie; None: nowhere. None is returned if nobody can tell, since these are gone. From a log that has its
    first record nothing is gone: where it has no copy, the group has read nothing of the target's own records.
    """
    copy, behind = first_copy(offset, source.home, target, copies.within(target))
    if homes is None or homes.end <= source.start:
        return copy if copy is not None else next_record(target, behind, target.end)
    passed = home_passed(offset, source, target.home, homes.within(source))
    if passed is None and source.start > 0:
        return None
    passed = passed or Offset(0)
    until = copy if copy is not None else target.end
    own = next((at for at, origin in target.records(max(passed, target.start), until) if origin is None), None)
    if own is not None:
        return own
    if copy is not None:
        return copy
    return next_record(target, max(behind, passed), target.end)


def first_copy(offset: Offset, home: Home, target: Log, copies: Span) -> tuple[Offset | None, Offset]:
    """The first copy in the target whose origin is at or behind this offset of its home; None: there is none.

    And one past the last copy whose origin is before it; the target's start if there is none.
    """
    search = _Search(offset, home, target, copies.start, copies.end, behind=target.start)
    search.look(search.low)
    if search.last is not None:  # where it is if no offset is left out, which is so in most logs
        at, origin = search.last
        search.look(Offset(at + (offset - origin) - 1))
        search.look(search.low)
    while search.low < search.high:
        search.look(Offset((search.low + search.high) // 2))
    return search.found, search.behind


@dataclass
class _Search:
    """Copies below low are before the offset, those from high on are not. last: of the former, its place and origin."""

    offset: Offset
    home: Home
    target: Log
    low: Offset
    high: Offset
    behind: Offset
    found: Offset | None = None
    last: tuple[Offset, Offset] | None = None

    def look(self, at: Offset) -> None:
        """At the first copy from there on. It narrows the search, unless it is not in it."""
        if not self.low <= at < self.high:
            return
        copy = _copy_in(self.target, self.home, at, self.high)
        if copy is None:
            self.high = at
        elif copy[1] >= self.offset:
            self.found, self.high = copy[0], at
        else:
            self.low = self.behind = Offset(copy[0] + 1)
            self.last = copy


def _copy_in(target: Log, home: Home, start: Offset, end: Offset) -> tuple[Offset, Offset] | None:
    for at, origin in target.records(start, end):
        if origin is not None and origin.home == home:
            return at, origin.offset
    return None


def home_passed(offset: Offset, source: Log, home: Home, homes: Span) -> Offset | None:
    """One past the last record of this home whose copy lies below `offset` in the source.

    If there is no copy below, up to the first one behind it. None: there is no copy at all.
    """
    last = last_copy(source, home, Span(homes.start, Offset(min(offset, homes.end))))
    if last is not None:
        return Offset(last + 1)
    first = _copy_in(source, home, max(offset, homes.start), homes.end)
    return None if first is None else first[1]


def last_copy(log: Log, home: Home, span: Span) -> Offset | None:
    """The origin of the last copy of this home. None: there is none."""
    window = FIRST_WINDOW
    high = span.end
    while high > span.start:
        low = Offset(max(span.start, high - window))
        found = [origin.offset for _, origin in log.records(low, high) if origin is not None and origin.home == home]
        if found:
            return found[-1]
        high, window = low, window * 2
    return None


def next_record(log: Log, start: Offset, end: Offset) -> Offset:
    """Of any kind, from `start` on; `end` if there is none: markers of transactions are nothing to read."""
    return next((at for at, _ in log.records(start, end)), end)
