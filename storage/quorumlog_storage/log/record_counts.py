"""How many records of a log are readable between two offsets: counted from batch headers, each of them read once.

Markers, records of aborted transactions and what compaction has removed are nothing that a reader gets, but the
distance of two offsets counts them all. So headers are counted, segment by segment, from the first offset on that was
asked for. Steps remember the count behind some of the batches; a later question reads the headers between two steps. A
segment that compaction has exchanged is another object, and counted anew; a truncation forgets all steps of its log.

Below the last stable offset it is decided which records are aborted, so steps lie there. What lies above is counted
with each question, without what is aborted by now.

One thread at a time counts in a log: the reader of its directory, in slices (decision 140).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records import Record, decode_batch
from quorumlog.records.format.batch import MAGIC, BatchHeader, Codec
from quorumlog_storage.log.aborted import aborted_for, transactional
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.producers.log_producers import LogProducers
from quorumlog_storage.segment.segment import Segment

STEP_BATCHES = 128  # between two steps of a segment, at first
MAX_STEPS = 512  # of a segment, of 24 bytes; where there would be more, every second one goes
SLICE_BATCHES = 512  # headers that are read at once: about a millisecond


class CountedBatch(NamedTuple):
    """end: exclusive, of its bytes in the segment. records: readable ones. is_exact: False where only its size and
    last offset are known, as of a compressed batch of format 0 or 1."""

    position: int
    end: int
    header: BatchHeader
    records: int
    is_exact: bool


class Place(NamedTuple):
    """Behind a batch: where it ends, which offset follows it, and the readable records since the first place."""

    position: int
    offset: Offset
    total: int


class SegmentCounts:
    """Of one segment, from a batch of it on. head: behind all that is counted."""

    __slots__ = ("_apart", "_offsets", "_positions", "_since", "_totals", "head", "is_exact")

    def __init__(self, first: Place) -> None:
        self._positions, self._offsets = array("q", [first.position]), array("q", [first.offset])
        self._totals = array("q", [first.total])
        self._apart, self._since = STEP_BATCHES, 0
        self.head, self.is_exact = first, True

    @property
    def first_offset(self) -> Offset:
        return self._offsets[0]

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, one: CountedBatch) -> None:
        """The batch behind the head."""
        self.head = Place(one.end, one.header.next_offset, self.head.total + one.records)
        self.is_exact = self.is_exact and one.is_exact
        self._since += 1
        if self._since < self._apart:
            return
        self._since = 0
        for column, value in zip((self._positions, self._offsets, self._totals), self.head, strict=True):
            column.append(value)
        if len(self) > MAX_STEPS:
            self._positions, self._offsets, self._totals = self._positions[::2], self._offsets[::2], self._totals[::2]
            self._apart *= 2

    def before(self, offset: Offset) -> Place:
        """The last place that is known at or before an offset, which is not before the first."""
        if offset >= self.head.offset:
            return self.head
        at = bisect_right(self._offsets, offset) - 1
        return Place(self._positions[at], self._offsets[at], self._totals[at])


class LogCounts:
    """What is counted of one log. cuts: truncations of the log until then."""

    def __init__(self) -> None:
        self._segments: dict[Segment, SegmentCounts] = {}
        self._cuts = 0

    @property
    def steps(self) -> int:
        """That are kept in memory."""
        return sum([len(one) for one in list(self._segments.values())])

    def fit(self, view: LogView, cuts: int) -> None:
        """Forget what the log does not hold any more."""
        if cuts != self._cuts:
            self._segments.clear()
            self._cuts = cuts
        elif not self._segments.keys() <= set(view.segments):
            live = set(view.segments)
            self._segments = {segment: counts for segment, counts in self._segments.items() if segment in live}

    def of(self, segment: Segment, offset: Offset, limit: int) -> SegmentCounts:
        """Of a segment, from `offset` on or from before it. Raises CorruptBatch, DiskError."""
        found = self._segments.get(segment)
        if found is None or offset < found.first_offset:
            position, first = 0, segment.base_offset
            if offset > first:
                position = segment.find(offset, limit)
                _, header = next(segment.log.walk(position, limit), (0, None))
                first = offset if header is None else min(offset, header.lowest_offset(offset))
            found = self._segments[segment] = SegmentCounts(Place(position, first, 0))
        return found


def counted_batches(
    view: LogView,
    producers: LogProducers | None,
    number: int,
    place: Place,
    end: Offset,
    *,
    until: Offset | None = None,
    most: int | None = None,
) -> list[CountedBatch]:
    """The next batches of a segment behind a place that end at or before `end` (exclusive).

    until: None, or the last of them is the one that reaches this offset. most: None: SLICE_BATCHES. Raises
    CorruptBatch, DiskError.
    """
    walk = view.segments[number].log.walk(place.position, view.limit(number))
    found: list[tuple[int, BatchHeader]] = []
    for one in islice(walk, SLICE_BATCHES if most is None else most):
        if one[1].next_offset > end:
            break
        found.append(one)
        if until is not None and one[1].next_offset >= until:
            break
    held = transactional([header for _, header in found])
    aborted: dict[int, list[tuple[Offset, Offset]]] = {}
    if held and producers is not None:
        for entry in aborted_for(view, producers, held):
            aborted.setdefault(entry.producer_id, []).append((entry.first_offset, entry.last_offset))
    counted = []
    for position, header in found:
        records = 0 if header.is_control else header.count
        if records and header.is_transactional:
            spans = aborted.get(header.producer_id, ())
            if any(first <= header.base_offset < last for first, last in spans):
                records = 0
        is_exact = header.magic >= MAGIC or header.codec == Codec.NONE
        counted.append(CountedBatch(position, position + header.size, header, records, is_exact))
    return counted


def records_before(segment: Segment, one: CountedBatch, offset: Offset) -> int:
    """Those of a batch that lie before an offset. Decodes it only where it is cut, and compaction has thinned it.

    Raises CorruptBatch, CorruptRecords, DiskError.
    """
    header = one.header
    if header.next_offset <= offset:
        return one.records
    if not one.records or offset <= header.base_offset:
        return 0
    if header.count == header.last_offset_delta + 1:
        return offset - header.base_offset
    return sum([record.offset < offset for record in _decoded(segment, one)])


def first_time(segment: Segment, one: CountedBatch, offset: Offset) -> int | None:
    """When the first readable record of a batch at or after an offset was made, in ms; NO_TIMESTAMP: it does not say.

    None: there is no such record. Raises CorruptBatch, CorruptRecords, DiskError.
    """
    header = one.header
    if not one.records or header.last_offset < offset:
        return None
    if offset <= header.base_offset and header.count == header.last_offset_delta + 1:
        if header.is_log_append_time or header.magic < MAGIC:
            return header.max_timestamp
        if not header.has_delete_horizon:
            return header.base_timestamp
    return next((record.timestamp_ms for record in _decoded(segment, one) if record.offset >= offset), None)


def _decoded(segment: Segment, one: CountedBatch) -> list[Record]:
    return decode_batch(segment.log.read(one.position, one.header.size), replace(one.header, position=0))
