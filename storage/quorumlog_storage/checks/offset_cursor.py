"""Goes along an offset index while the batches of its segment are read, and tells the first entry that is wrong."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.records.batch import BatchHeader
from quorumlog_storage.segment.index_pair import MAX_UNINDEXED_BYTES
from quorumlog_storage.segment.offset_index import ENTRY_BYTES, OffsetIndex
from quorumlog_storage.segment.segment import Segment

Tell = Callable[[str, int, str, str], None]  # path, position in it, what is expected, what was found


class OffsetCursor:
    """Fed with the batches in order."""

    def __init__(self, index: OffsetIndex, segment: Segment, interval_bytes: int, tell: Tell) -> None:
        self._index, self._base, self._tell = index, segment.base_offset, tell
        self._path = segment.indexes.offsets.path
        self._number = 0  # of the next entry
        self._indexed_end = 0  # where the batch of the last entry ends
        self._apart = max(MAX_UNINDEXED_BYTES, 2 * interval_bytes)

    def batch(self, position: int, header: BatchHeader) -> bool:
        """True if the batch has an entry."""
        self._lost_before(position)
        if self._number >= len(self._index) or self._index[self._number].position != position:
            return False
        found, last_offset = self._base + self._index[self._number].relative_offset, header.last_offset
        if found != last_offset:
            expected = f"offset {last_offset}, the last one of the batch at byte {position}"
            self._tell(self._path, self._number * ENTRY_BYTES, expected, f"offset {found}")
        self._check_distance(position)
        self._number, self._indexed_end = self._number + 1, position + header.size
        return True

    def finish(self, size: int) -> None:
        """size: of the segment, in bytes."""
        self._lost_before(size)
        self._check_distance(size)

    def _lost_before(self, position: int) -> None:
        """Entries for positions before it that were not met name no batch."""
        while self._number < len(self._index) and self._index[self._number].position < position:
            found = f"byte {self._index[self._number].position}, where none begins"
            self._tell(self._path, self._number * ENTRY_BYTES, "the position of a batch", found)
            self._number += 1

    def _check_distance(self, position: int) -> None:
        if position - self._indexed_end > self._apart:
            found = f"none for the {position - self._indexed_end} bytes before byte {position}"
            self._tell(self._path, self._number * ENTRY_BYTES, f"an entry every {self._apart} bytes", found)
