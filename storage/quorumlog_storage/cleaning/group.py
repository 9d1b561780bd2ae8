"""One group of segments in pass 2: what stays of its batches goes to an output, once something changes at all.

A group of one segment begins without an output. At the first batch that changes, the bytes before it are copied, and
from there on what stays is written. So a segment of which everything stays is only read; one of which pass 1 knows
that everything stays is not even read.

`grouped` says which neighbours become one segment: as many as fit, by size, by index size and by offsets (Kafka's
`groupSegmentsBySize`). The sizes before the compaction count, so an output always fits.

The segments that a group becomes are written under `.cleaned` (`Output`). The first begins where the group begins.
Normally it is the only one. A group whose batches grew by their compression may outgrow a segment: then the next one
begins where the one before it ends, so that segments always meet.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import parse_header
from quorumlog_storage.cleaning.batch_filter import BatchFilter
from quorumlog_storage.cleaning.batches import Piece, Scanned, SourceFile
from quorumlog_storage.cleaning.keys import Keys
from quorumlog_storage.cleaning.marks import Marks
from quorumlog_storage.cleaning.spec import GroupCleaned, RoundSpec
from quorumlog_storage.files.disk import Buffer, Disk
from quorumlog_storage.files.names import CLEANED_SUFFIX
from quorumlog_storage.segment.batch import StoredBatch, received_batches
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.offset_index import ENTRY_BYTES, MAX_RELATIVE_OFFSET
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.segment.transaction_index import AbortedTransaction

_TIME_ENTRY_BYTES = 12  # the time index has an entry where the offset index has one


def grouped(
    sources: Iterable[SourceFile],
    *,
    old: Container[Offset] = (),
    segment_bytes: int,
    index_bytes: int,
    index_interval_bytes: int,
) -> list[list[SourceFile]]:
    """old: base offsets of segments that stay as they are; nothing is merged across one.
    index_bytes: the limit of one index file, `segment.index.bytes`.
    """
    groups: list[list[SourceFile]] = []
    size = entries = 0
    is_closed = True
    for source in sources:
        if source.base_offset in old:
            is_closed = True
            continue
        own_entries = source.size // max(1, index_interval_bytes) + 1
        size, entries = size + source.size, entries + own_entries
        fits = (
            not is_closed
            and size <= segment_bytes
            and entries * _TIME_ENTRY_BYTES <= max(index_bytes, ENTRY_BYTES)
            and source.end_offset - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
        )
        if fits:
            groups[-1].append(source)
        else:
            groups.append([source])
            size, entries, is_closed = source.size, own_entries, False
    return groups


class Output:
    """sizes: (base offset, bytes) of what was written."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        base_offset: Offset,
        *,
        interval: int,
        max_bytes: int,
        buffer_bytes: int,
        last_source: str,
    ) -> None:
        """last_source: path of the log file whose time of modification the outputs get, as in Kafka."""
        self._disk, self._path, self._interval = disk, path, interval
        self._max_bytes, self._buffer_bytes, self._last_source = max_bytes, buffer_bytes, last_source
        self._done: list[tuple[Offset, int]] = []  # (base offset, bytes)
        self._waiting: list[StoredBatch] = []
        self._waiting_bytes = 0
        self._end_offset = base_offset
        self._aborted: list[AbortedTransaction] = []  # in the segment that is written
        self._segment = self._new(base_offset)

    def add(self, stored: StoredBatch, aborted: Sequence[AbortedTransaction]) -> int:
        """Returns the bytes that were written to disk by it, often 0. aborted: by this batch. Raises DiskError."""
        written = 0
        if not self._segment.has_room(self._segment.size + self._waiting_bytes, stored, self._max_bytes):
            written = self._write()
            self._finish()
            self._segment = self._new(self._end_offset)
        self._aborted += aborted
        self._waiting.append(stored)
        self._waiting_bytes += stored.size
        self._end_offset = stored.next_offset
        return written + (self._write() if self._waiting_bytes >= self._buffer_bytes else 0)

    def close(self) -> int:
        """Make all durable but the names. Returns the bytes written. Raises DiskError."""
        written = self._write()
        self._finish()
        return written

    def let_go(self) -> None:
        """The round is over, in whatever way: nothing stays open."""
        self._segment.let_go()

    @property
    def sizes(self) -> tuple[tuple[Offset, int], ...]:
        return tuple(self._done)

    def _new(self, base_offset: Offset) -> Segment:
        segment = Segment(self._disk, self._path, base_offset, self._interval, CLEANED_SUFFIX)
        segment.create()
        return segment

    def _write(self) -> int:
        size = self._waiting_bytes
        if self._waiting:
            self._segment.append(self._waiting, read_soon=False)
            self._waiting, self._waiting_bytes = [], 0
        return size

    def _finish(self) -> None:
        self._segment.transactions.replace(self._aborted)
        self._segment.flush_caches()
        self._disk.copy_modified(self._last_source, self._segment.log.path)
        self._segment.log.flush()
        self._done.append((self._segment.base_offset, self._segment.size))
        self._segment.let_go()
        self._aborted = []


Added = tuple[StoredBatch, Sequence[AbortedTransaction]]


class GroupPass:
    """cleaned: None until `steps` has ended. needed: last offsets of batches that stay in any case, sorted."""

    def __init__(
        self,
        disk: Disk,
        spec: RoundSpec,
        group: Sequence[SourceFile],
        batches: BatchFilter,
        keys: Keys,
        marks: Marks,
        latest: Offset,
        needed: Sequence[Offset],
    ) -> None:
        self._disk, self._spec, self._group, self._batches = disk, spec, group, batches
        self._keys, self._marks, self._latest, self._needed = keys, marks, latest, needed
        self._output = None if len(group) == 1 else self._new_output()
        self._aborted: dict[Offset, Sequence[AbortedTransaction]] = {}  # by batch, while there is no output
        self.cleaned: GroupCleaned | None = None

    def steps(self) -> Iterator[tuple[int, int]]:
        """Yields (bytes read, bytes written) since the last step. Raises CorruptBatch, DiskError."""
        try:
            yield from self._steps()
        finally:
            if self._output is not None:
                self._output.let_go()

    def _steps(self) -> Iterator[tuple[int, int]]:
        group = self._group
        bases, before = tuple(source.base_offset for source in group), sum(source.size for source in group)
        if len(group) == 1 and self._marks.stays_as_it_is(group[0].base_offset, group[0].size):
            self.cleaned = GroupCleaned(bases, (), before, before)
            return
        last = max((source for source in group if source.size), key=lambda source: source.base_offset, default=None)
        for source in group:
            yield from self._source(source, is_last=source is last)
        if self._output is None:
            self.cleaned = GroupCleaned(bases, (), before, before)
            return
        yield 0, self._output.close()
        self.cleaned = GroupCleaned(bases, self._output.sizes, before, sum(size for _, size in self._output.sizes))

    def _source(self, source: SourceFile, *, is_last: bool) -> Iterator[tuple[int, int]]:
        ranges = self._marks.to_read(source.base_offset, source.size, is_last=is_last, needed=self._needed)
        unchanged = 0  # exclusive end of the bytes that stay as they are, while there is no output
        for start, end in ranges:
            for piece in source.pieces(self._disk, self._spec.io_buffer_bytes, start, end, self._keys.scan):
                added, has_changed = self._filtered(source, piece, is_last=is_last)
                if self._output is None and (has_changed or piece.position > unchanged):
                    yield from self._begin(source, unchanged)
                written = 0
                for stored, aborted in added:
                    if self._output is not None:
                        written += self._output.add(stored, aborted)
                    elif aborted:
                        self._aborted[stored.base_offset] = aborted
                unchanged = piece.position + piece.size
                yield len(piece.data), written

    def _filtered(self, source: SourceFile, piece: Piece, *, is_last: bool) -> tuple[list[Added], bool]:
        """(what stays of a piece, True if that is not all of it)."""
        last = source.size - piece.position if is_last else -1  # where the batch ends that must stay
        simple = piece.simple
        try:
            added, changes = self._each(piece, last) if simple is None else self._sifted(piece.data, simple, last)
        except CorruptRecords as error:
            raise CorruptBatch(source.path, piece.position + error.position, error.reason) from error
        if sum(stored.size for stored, _ in added) < len(piece.data) // 2:
            # a few views must not keep the whole piece in memory until they are written
            added = [(_owned(stored), aborted) for stored, aborted in added]
        return added, changes > 0

    def _each(self, piece: Piece, last: int) -> tuple[list[Added], int]:
        """(what stays, how many batches change). last: end of the batch that must stay, in the piece."""
        batches, added, changes = self._batches, list[Added](), 0
        for header in piece.headers:
            batch = batches.filtered(piece.data, header, must_stay=header.end == last)
            aborted = batches.take_aborted()
            changes += not isinstance(batch, memoryview)
            if batch is not None:
                added.append((_stored(batch), aborted))
        return added, changes

    def _sifted(self, data: bytes, simple: Scanned, last: int) -> tuple[list[Added], int]:
        """The same where no batch belongs to a transaction."""
        added, changes = list[Added](), 0
        for item in self._keys.sift(data, simple, self._latest):
            if isinstance(item, StoredBatch):
                added.append((item, ()))
                continue
            header, kept = item
            changes += 1
            if kept.records or header.end == last or self._is_needed(header.last_offset):
                batch = self._batches.filtered(data, header, must_stay=header.end == last, kept=kept)
                if batch is not None:
                    added.append((_stored(batch), ()))
        return added, changes

    def _is_needed(self, offset: Offset) -> bool:
        at = bisect_left(self._needed, offset)
        return at < len(self._needed) and self._needed[at] == offset

    def _begin(self, source: SourceFile, end: int) -> Iterator[tuple[int, int]]:
        """Something changes: copy the bytes before it."""
        output = self._output = self._new_output()
        for piece in source.pieces(self._disk, self._spec.io_buffer_bytes, 0, end):
            written = 0
            for stored in received_batches(piece.data, piece.headers):
                written += output.add(stored, self._aborted.pop(stored.base_offset, ()))
            yield len(piece.data), written

    def _new_output(self) -> Output:
        spec = self._spec
        return Output(
            self._disk,
            spec.path,
            self._group[0].base_offset,
            interval=spec.index_interval_bytes,
            max_bytes=spec.max_output_bytes,
            buffer_bytes=spec.io_buffer_bytes,
            last_source=self._group[-1].path,
        )


def _stored(batch: Buffer) -> StoredBatch:
    (stored,) = received_batches(batch, (parse_header(batch),))
    return stored


def _owned(stored: StoredBatch) -> StoredBatch:
    return stored._replace(parts=tuple(bytes(part) for part in stored.parts))
