"""Pass 1: the newest offset of each key in the dirty part of a log, as far as the map has room.

Control batches and data of aborted transactions have no say: a key that was overwritten only there keeps its value. Nor
have segments of an older format, which stay as they are. The
covered range ends at the end of a segment, also after a gap, or inside one if the map is full; then the next round goes
on there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import MAGIC
from quorumlog_storage.cleaning.batches import Piece, SourceFile
from quorumlog_storage.cleaning.keys import Keys
from quorumlog_storage.cleaning.marks import Marks, Page
from quorumlog_storage.cleaning.outcomes import Survey
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.segment.log_file import CorruptBatch


class OldBatch(Exception):
    """A batch of an older format came after others of its segment, whose keys should not have been put. The survey is
    complete now: begin again."""


class KeyIndex:
    """latest: the last offset that is covered, inclusive. is_full: the map had no room for the key that came next."""

    def __init__(self, keys: Keys, marks: Marks, survey: Survey, first_dirty: Offset) -> None:
        """survey: of everything before the first source that `read` gets."""
        self.latest: Offset = first_dirty - 1
        self.is_full = False
        self._keys, self._marks, self._survey, self._first_dirty = keys, marks, survey, first_dirty

    def read(
        self, disk: Disk, sources: Sequence[SourceFile], beyond: Sequence[SourceFile], buffer_bytes: int
    ) -> Iterator[int]:
        """Yields bytes read, after each piece. beyond: see `Survey`. Raises OldBatch, CorruptBatch, DiskError."""
        survey = self._survey
        for number, source in enumerate(sources):
            is_old = source.base_offset in survey.old
            for piece in () if is_old else source.pieces(disk, buffer_bytes, scan=self._keys.scan):
                if not survey.is_complete and piece.simple is None and _needs_survey(piece):
                    yield from survey.finish(disk, sources[number:], beyond)
                    if source.base_offset in survey.old:
                        raise OldBatch
                self._take(source, piece)
                yield len(piece.data)
                if not self.is_full:
                    continue
                if not survey.is_complete:  # the rest of this source belongs to pass 2
                    yield from survey.finish(disk, (source,), (*sources[number + 1 :], *beyond))
                    if source.base_offset in survey.old:
                        raise OldBatch
                return
            self.latest = max(self.latest, source.end_offset - 1)

    def _take(self, source: SourceFile, piece: Piece) -> None:
        simple = piece.simple
        try:
            if simple is not None and simple.first >= self._first_dirty:
                full = self._keys.index_scanned(piece.data, simple)
                page: Page | None = Page(piece.position, simple.size, simple.first, simple.end_offset, simple.records)
                end_offset = simple.end_offset
            else:
                full, page, end_offset = self._take_each(piece)
        except CorruptRecords as error:
            raise CorruptBatch(source.path, piece.position + error.position, error.reason) from error
        if full >= 0:
            self.is_full = True
            self.latest = max(self.latest, full - 1)
            return
        self.latest = max(self.latest, end_offset - 1)
        if page is not None:
            self._marks.note_page(source.base_offset, page)

    def _take_each(self, piece: Piece) -> tuple[Offset, Page | None, Offset]:
        """(the offset for which there is no room or NOT_FOUND, the page if it is one, exclusive end)."""
        headers = piece.headers
        dirty = [
            header
            for header in headers
            if header.next_offset > self._first_dirty
            and not header.is_control
            and header.count
            and not self._survey.outcomes.is_aborted(header)
        ]
        full, first, end_offset = self._keys.index(piece.data, dirty), headers[0].base_offset, headers[-1].next_offset
        if len(dirty) < len(headers) or any(header.is_transactional for header in headers):
            return full, None, end_offset
        records = sum(header.count for header in headers)
        return full, Page(piece.position, piece.size, first, end_offset, records), end_offset


def _needs_survey(piece: Piece) -> bool:
    return any(header.is_transactional or header.magic < MAGIC for header in piece.headers)
