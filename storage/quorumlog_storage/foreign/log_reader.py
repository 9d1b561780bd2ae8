"""A partition's log as somebody beside its broker reads it: from the files alone, without changing one.

The broker may be stopped, or write, roll, delete and compact meanwhile. So a reader is of one moment. Rules:

1. What it was made of may be gone: FileMissing, or CorruptBatch for a file that shrinks while it is freed. The caller
   makes another reader, which sees what there is now, and goes on at its offset; what is damaged twice is damaged.
2. The last segment ends before an append that never ended. Other damage in it counts once somebody reads that far: a
   start would cut the log there, and what is above the high watermark was never promised.
3. Indexes are hints, as everywhere. What is missing or wrong is made again in memory, and never written. The index of
   aborted transactions is not asked at all: nothing tells one that lost entries from one that never had them. A
   producer's next marker decides.
4. Of an interrupted compaction those segments count that the next start would keep (recovery/swap_files.py).
5. Offsets that are missing inside a segment are the work of compaction. Between two segments they are so below the
   cleaner's point, and behind a segment of an interrupted compaction, whose point was not noted; else somebody lost a
   segment. A cleaner notes its point when it has done all of a log, so a hole may also be its work while it is at it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords, decode_batch
from quorumlog.records.format.batch import BATCH_OVERHEAD, NO_PRODUCER, BatchHeader, headers, iter_headers, parse_header
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.files.names import LOG_SUFFIX, SWAP_SUFFIX, parse_segment_name
from quorumlog_storage.foreign.unfinished import is_unfinished
from quorumlog_storage.log.aborted import TransactionalBatch
from quorumlog_storage.log.log_ranges import OffsetRange, ranges_from
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.log.time_lookup import first_since
from quorumlog_storage.producers.log_producers import LogProducers
from quorumlog_storage.producers.replay import marker_in
from quorumlog_storage.recovery.swap_files import whole_swaps
from quorumlog_storage.segment.index_file import CorruptIndex, I, IndexFile
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.offset_index import MAX_POSITION, START
from quorumlog_storage.segment.segment import Segment

INDEX_INTERVAL_BYTES = 4096  # of indexes that are made again; the topic's own setting is not in these files
RANGES_AT_ONCE = 1_000
MAX_LISTINGS = 10  # of a directory that changes all the time; then the last one counts


class NoSegment(Exception):
    """The directory holds no segment."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} holds no segment (*.log)")
        self.path = path


class Hole(Exception):
    """Offsets are missing between two segments, and no cleaner took them. end: exclusive."""

    def __init__(self, path: str, start: Offset, end: Offset) -> None:
        super().__init__(f"{path}: offsets {start} to {end - 1} are missing between two segments")
        self.path, self.start, self.end = path, start, end


class Part(NamedTuple):
    """Whole batches, and the file and position that they lie at. next_offset: one past the last of them."""

    path: str
    position: int
    data: bytes
    next_offset: Offset


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    offset: Offset
    producer_id: int
    committed: bool


class LogReader:
    """start_offset, end_offset: of what can be read; the end is exclusive, and damage lies there where `damage` is set.

    Made by one thread, and used by that one.
    """

    def __init__(self, disk: Disk, path: str, *, log_start: Offset = 0, cleaned: Offset = 0) -> None:
        """log_start: records before it were deleted. cleaned: how far the cleaner has come, exclusive.

        Raises NoSegment, FileMissing, CorruptBatch, DiskError.
        """
        found, self._swapped = _segments(disk, path)
        if not found:
            raise NoSegment(path)
        self.path = path
        self.start_offset = max(log_start, found[0].base_offset)
        last = found[-1]
        self._disk, self._cleaned = disk, cleaned
        _load_padded(disk, last.indexes.offsets)
        _load_padded(disk, last.indexes.times)
        size, self.end_offset, self.damage = _end_of(last)
        last.log.truncate_to(size)
        bases = [segment.base_offset for segment in found]
        first = max(0, bisect_right(bases, self.start_offset) - 1)
        self._segments = tuple(found[first:])
        self._view = LogView(path, self._segments, tuple(bases[first:]), size, self.start_offset, self.end_offset)

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """What a reader of committed records sees, exclusive. Raises CorruptBatch, DiskError."""
        producers = LogProducers.beside(self._disk, self.path)
        return min(high_watermark, producers.first_open_at(self._segments, high_watermark))

    def first_since(self, timestamp_ms: int, end: Offset) -> Offset | None:
        """The first record below `end` at or after a time; None: there is none. Raises CorruptBatch, DiskError."""
        offset = self.start_offset
        while offset < end:
            found = first_since(self._view, offset, timestamp_ms, end)
            for header in headers(found.data)[:1]:
                for record in decode_batch(found.data, header):
                    if record.offset >= self.start_offset and record.timestamp_ms >= timestamp_ms:
                        return record.offset
            offset = found.next_offset
        return None

    def ranges(self, start: Offset, end: Offset, max_bytes: int) -> list[OffsetRange]:
        """How the bytes lie among these offsets: as `log_ranges.ranges_from`, for all segments."""
        found: list[OffsetRange] = []
        offset = start
        while offset < end:
            found += ranges_from(self._view, offset, end, max_bytes, RANGES_AT_ONCE)
            offset = found[-1].end
        return found

    def parts(self, offset: Offset, end: Offset, max_bytes: int) -> Iterator[Part]:
        """The batches from the one that holds `offset`, or follows it, to the last that begins before `end`.

        In parts of at most max_bytes, or one batch; checksums are not verified. Raises Hole, FileMissing, DiskError;
        CorruptBatch for bytes that are no batch, or a batch that does not follow the one before it.
        """
        first = self._view.number_for(offset)
        position = self._segments[first].find(offset, self._view.limit(first))
        for number in range(first, len(self._segments)):
            segment, limit = self._segments[number], self._view.limit(number)
            following = self._view.bases[number + 1] if number + 1 < len(self._segments) else self.end_offset
            previous, read_from = segment.base_offset, position
            while position < limit:
                part = _part(segment, position, limit, max_bytes, previous, following, end)
                if part is None:
                    return
                yield part
                position, previous = position + len(part.data), part.next_offset
            if read_from == position:
                previous = segment.end_offset()
            missing = max(previous, offset)
            is_cleaned = following <= self._cleaned or segment.base_offset in self._swapped
            if missing < min(following, end) and not is_cleaned:
                raise Hole(self.path, missing, following)
            if following >= end:
                return
            position = 0

    def markers(self, offset: Offset) -> Iterator[Marker]:
        """The ends of transactions, from the batch that holds `offset` on, in order. Raises CorruptBatch, DiskError."""
        first = self._view.number_for(offset)
        position = self._segments[first].find(offset, self._view.limit(first))
        for number in range(first, len(self._segments)):
            log = self._segments[number].log
            for at, header in log.walk(position, self._view.limit(number)):
                if header.is_control and header.producer_id != NO_PRODUCER:
                    marker = marker_in(log.read(at, header.size))
                    if marker is not None:
                        yield Marker(header.base_offset, header.producer_id, marker.committed)
            position = 0


class Outcomes:
    """Which batches of transactions did not happen. Asked for batches in the order of the log, from an offset on."""

    def __init__(self, reader: LogReader, offset: Offset) -> None:
        self._ahead = reader.markers(offset)
        self._known: dict[int, deque[Marker]] = {}  # of each producer, those that were met, in order

    def aborted(self, batches: Iterable[TransactionalBatch]) -> list[TransactionalBatch]:
        """(producer id, offset) of the first of these batches of each aborted transaction.

        One whose marker is nowhere counts: below the last stable offset compaction took it, or a leader forgot it.
        Raises as `LogReader.markers`.
        """
        found: dict[tuple[int, Offset], TransactionalBatch] = {}
        for number, (producer_id, base_offset) in enumerate(batches):
            if not number:
                self._forget_before(base_offset)
            marker = self._end_of(producer_id, base_offset)
            if marker is not None and not marker.committed:
                found.setdefault((producer_id, marker.offset), (producer_id, base_offset))
        return list(found.values())

    def _forget_before(self, offset: Offset) -> None:
        for producer_id, known in list(self._known.items()):
            while known and known[0].offset < offset:
                known.popleft()
            if not known:
                del self._known[producer_id]

    def _end_of(self, producer_id: int, base_offset: Offset) -> Marker | None:
        known = self._known.setdefault(producer_id, deque())
        while known and known[0].offset < base_offset:
            known.popleft()
        while not known:
            marker = next(self._ahead, None)
            if marker is None:
                return None
            if marker.offset > base_offset:
                self._known.setdefault(marker.producer_id, deque()).append(marker)
        return known[0]


def names_in(disk: Disk, path: str) -> list[str]:
    """Of a directory in which somebody may rename files while it is listed. Raises FileMissing, DiskError.

    A listing may lack such a file under both of its names (POSIX, readdir). So it is done until two of them agree.
    """
    names = disk.list(path)
    for _ in range(MAX_LISTINGS):
        before, names = names, disk.list(path)
        if names == before:
            break
    return names


def _segments(disk: Disk, path: str) -> tuple[list[Segment], frozenset[Offset]]:
    """In order of base offset, and the bases of those that an interrupted compaction has made.

    Raises FileMissing, CorruptBatch, DiskError.
    """
    names = names_in(disk, path)
    parsed = [found for name in names if (found := parse_segment_name(name)) is not None]
    live = [Segment(disk, path, base, INDEX_INTERVAL_BYTES) for base, suffix in parsed if suffix == LOG_SUFFIX]
    swaps = [Segment(disk, path, base, INDEX_INTERVAL_BYTES, SWAP_SUFFIX) for base in whole_swaps(names)]
    swapped = frozenset(segment.base_offset for segment in swaps)
    if swaps:
        first, end = swaps[0].base_offset, swaps[-1].end_offset()
        # one without a record takes its name from a source all the same
        live = [one for one in live if one.base_offset not in swapped and not first <= one.base_offset < end]
    return sorted([*live, *swaps], key=lambda segment: segment.base_offset), swapped


def _load_padded(disk: Disk, file: IndexFile[I]) -> None:
    """Kafka makes the indexes of its last segment as large as they may get: what follows their entries is zero."""
    try:
        content = disk.read_bytes(file.path)
        used = -(-len(content.rstrip(b"\0")) // file.entry_bytes) * file.entry_bytes
        if used < len(content):
            file.install(file.slot, file.decode(content[:used]))
    except (FileMissing, CorruptIndex):
        pass


def _end_of(segment: Segment) -> tuple[int, Offset, CorruptBatch | None]:
    """Where the last segment's batches end, one past their last offset, and what else than an append lies there."""
    file = segment.log.file
    size, offsets = file.size(), segment.indexes.offsets
    try:
        loaded = offsets.slot.get(None)
        entry = (offsets.read_last() if loaded is None else loaded).floor_position(MAX_POSITION)
    except (FileMissing, CorruptIndex):
        entry = START
    end, next_offset = 0, segment.base_offset
    try:
        for position, header in offsets.walk_from(entry, size) or segment.log.walk(0, size):
            end, next_offset = position + header.size, header.next_offset
    except CorruptBatch as error:
        return end, next_offset, None if is_unfinished(file, end, size) else error
    return end, next_offset, None


def _part(
    segment: Segment, position: int, limit: int, max_bytes: int, previous: Offset, following: Offset, end: Offset
) -> Part | None:
    """The whole batches at a position. None: the one there begins at or after `end`.

    previous: one past the last batch before it. following: where the next segment begins.
    """
    path, log = segment.log.path, segment.log
    data = log.read(position, min(max(max_bytes, BATCH_OVERHEAD), limit - position))
    try:
        header = parse_header(data)
        if header.size > limit - position:
            raise CorruptRecords(0, f"a batch of {header.size} bytes, {limit - position} are left")
        if header.size > len(data):
            data = log.read(position, header.size)
        size = 0
        for header in iter_headers(data, partial_tail=True):
            if header.lowest_offset(previous) >= end:
                break
            _check_order(header, previous, following)
            size, previous = header.end, header.next_offset
            if previous >= end:
                break
    except CorruptRecords as error:
        raise CorruptBatch(path, position + error.position, error.reason) from error
    return Part(path, position, data[:size], previous) if size else None


def _check_order(header: BatchHeader, previous: Offset, following: Offset) -> None:
    """The checksum does not cover offsets."""
    if header.base_offset < previous or header.next_offset > following:
        found = f"offsets {header.base_offset} to {header.last_offset}"
        raise CorruptRecords(header.position, f"{found}, which do not lie between {previous} and {following}")
