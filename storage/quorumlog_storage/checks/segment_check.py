"""The check of one closed segment: every batch is read, and what its three indexes say is compared with the batches.

What must hold (the rules of offset_index.py, time_index.py, transaction_index.py):

1. Each entry of the offset index names a batch: where it begins, and its last offset. No two entries, nor the last one
   and the end, are further apart than a look-up should have to walk.
2. Each entry of the time index names a batch that has its timestamp, and no batch before that has a later one. At each
   entry of the offset index, and at the end, the largest timestamp so far has an entry.
3. The transaction index is as long as the log noted, with that checksum. Where the log still holds the whole story, it
   holds exactly the transactions that the markers of this segment have aborted.

While it reads, it makes the offset index and the time index anew, so that a wrong one can be replaced without another
walk. A batch that is damaged is told. Indexes of a segment with a damaged batch are not judged and not replaced: what
they would be compared with is not the log that was written.

The auditor (`quorumlog_storage/audit/`) is a second answer to the same questions, for the files of a stopped node.

A cursor goes along each of two indexes while the batches are read, and tells the first entry that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import NO_PRODUCER, BatchHeader, parse_header, verify_crc
from quorumlog.records.format.crc import crc32c
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.producers.index_note import Fingerprint
from quorumlog_storage.producers.producer_state import ProducerStates
from quorumlog_storage.producers.replay import aborted, marker_in
from quorumlog_storage.producers.transactions import EndedTransaction
from quorumlog_storage.segment.index_file import CorruptIndex
from quorumlog_storage.segment.index_pair import MAX_UNINDEXED_BYTES, IndexBuild, Slots
from quorumlog_storage.segment.offset_index import ENTRY_BYTES, MAX_RELATIVE_OFFSET, OffsetIndex
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.segment.time_index import NO_TIME, TIME_ENTRY_BYTES, TimeEntries, TimeEntry
from quorumlog_storage.segment.transaction_index import ENTRY_BYTES as TRANSACTION_BYTES
from quorumlog_storage.segment.transaction_index import AbortedTransaction, CorruptTransactionIndex, decode_entries


class LogFault(NamedTuple):
    """position: bytes from the start of the file at `path`."""

    path: str
    position: int
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path} at byte {self.position}: expected {self.expected}, found {self.found}"


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


class TimeCursor:
    """Fed with the batches in order."""

    def __init__(self, index: TimeEntries, segment: Segment, tell: Tell) -> None:
        self._index, self._base, self._tell = index, segment.base_offset, tell
        self._path = segment.indexes.times.path
        self._number = 0  # of the next entry
        self._told = NO_TIME  # the entry before it

    def batch(self, header: BatchHeader, largest: TimeEntry, *, is_indexed: bool) -> None:
        """largest: of all batches up to this one. is_indexed: the batch has an entry in the offset index."""
        last = header.last_offset - self._base
        while self._number < len(self._index) and self._index[self._number].relative_offset <= last:
            entry = self._index[self._number]
            is_batch = entry.relative_offset == last and entry.timestamp == header.max_timestamp
            if not is_batch or entry.timestamp != largest.timestamp:
                expected = (
                    f"{largest.timestamp} ms at offset {self._base + largest.relative_offset}, the largest so far"
                )
                self._wrong(expected, f"{entry.timestamp} ms at offset {self._base + entry.relative_offset}")
            self._told = entry
            self._number += 1
        if is_indexed:
            self._check_last(largest)

    def finish(self, largest: TimeEntry) -> None:
        """largest: of all batches."""
        if self._number < len(self._index):
            offset = self._base + self._index[self._number].relative_offset
            self._wrong("an offset of the segment", f"offset {offset}, behind its end")
        self._check_last(largest)

    def _check_last(self, largest: TimeEntry) -> None:
        if self._told.timestamp < largest.timestamp:
            at = f"offset {self._base + largest.relative_offset}"
            self._wrong(
                f"an entry with {largest.timestamp} ms at {at}", f"{self._told.timestamp} ms, the last one by then"
            )

    def _wrong(self, expected: str, found: str) -> None:
        self._tell(self._path, self._number * TIME_ENTRY_BYTES, expected, found)


SLICE_BYTES = 256 << 10  # read at once
SLICE_BATCHES = 250  # looked at at once: some 4 ms


class Outcome(NamedTuple):
    """What was found of a segment. faults: of its indexes, the first of each file. damage: of its batches.

    build, slots: to replace both indexes with, if one is wrong. aborted: to replace the transaction index with; None:
    it is right, or only the log's producer state can say (must_build).
    """

    segment: Segment
    faults: tuple[LogFault, ...]
    damage: tuple[LogFault, ...]
    build: IndexBuild | None
    slots: Slots
    aborted: tuple[AbortedTransaction, ...] | None
    must_build: bool


class SegmentCheck:
    """`read` until `is_done`, then `outcome`. For one thread at a time.

    end_offset: where the next segment begins. states: the producers where this one does; None: not known. noted: of the
    transaction index; None: nothing is noted. The indexes' files are read at once; what they lack is a fault, whatever
    the memory holds. slice_bytes: to be read at once, at least the header of a batch; a larger batch is read whole.
    Raises DiskError.
    """

    def __init__(
        self,
        disk: Disk,
        segment: Segment,
        interval_bytes: int,
        states: ProducerStates | None,
        noted: Fingerprint | None,
        end_offset: Offset,
        slice_bytes: int = SLICE_BYTES,
    ) -> None:
        self.segment = segment
        self._slice_bytes = slice_bytes
        self.is_exact = states is not None  # the producers' states are what the log says, so far
        self.states = ProducerStates() if states is None else states
        self.end_offset: Offset = segment.base_offset  # of the batches so far, exclusive
        self.position = 0  # of the next batch
        self._size = segment.size
        self._limit = min(end_offset, segment.base_offset + MAX_RELATIVE_OFFSET + 1)
        self._slots = segment.indexes.slots
        self._build = IndexBuild(segment.base_offset, interval_bytes)
        self._faults: dict[str, LogFault] = {}  # by path
        self._damage: list[LogFault] = []
        self._ended: list[EndedTransaction] = []
        self._noted = noted
        self._offsets = OffsetCursor(self._read_offsets(disk), segment, interval_bytes, self._fault)
        self._times = TimeCursor(self._read_times(disk), segment, self._fault)
        self._transactions = self._read_transactions(disk)

    @property
    def is_done(self) -> bool:
        return self.position >= self._size

    def read(self) -> int:
        """Look at the next batches. Returns how many. Raises DiskError, where the next call repeats it."""
        file = self.segment.log.file
        data = file.pread(self.position, min(self._slice_bytes, self._size - self.position))
        at = count = 0
        while not self.is_done and count < SLICE_BATCHES:
            try:
                header = parse_header(data, at)
                if header.size > self._size - self.position:
                    raise CorruptRecords(at, f"a batch of {header.size} bytes, {self._size - self.position} are left")
                if not self.end_offset <= header.base_offset <= header.last_offset < self._limit:
                    found = f"offsets {header.base_offset} to {header.last_offset}"
                    raise CorruptRecords(at, f"{found} between {self.end_offset} and {self._limit}, exclusive")
            except CorruptRecords as error:
                if at and len(data) - at < self._size - self.position:
                    break  # cut by the end of what was read
                self._damaged(error.reason)
                self.position = self._size
                break
            if header.end > len(data):
                if at:
                    break
                data = file.pread(self.position, header.size)
            self._take(data, header)
            at, count = at + header.size, count + 1
        return count

    def outcome(self) -> Outcome:
        entries = tuple(aborted(self._ended))
        if not self._damage:
            self._offsets.finish(self._size)
            self._times.finish(self._build.largest)
            self._compare_transactions(entries)
        faults = () if self._damage else tuple(self._faults.values())
        wrong, index, transactions = {fault.path for fault in faults}, self.segment.indexes, self.segment.transactions
        is_wrong = transactions.path in wrong
        return Outcome(
            self.segment,
            faults,
            tuple(self._damage),
            self._build if index.offsets.path in wrong or index.times.path in wrong else None,
            self._slots,
            entries if is_wrong and self.is_exact else None,
            is_wrong and not self.is_exact,
        )

    # --- batches ---

    def _take(self, data: bytes, header: BatchHeader) -> None:
        try:
            verify_crc(data, header)
        except CorruptRecords as error:
            self._damaged(error.reason)
        if not self._damage:  # else its header may say anything, and nothing is compared any more
            self._compare(data, header)
        self.position += header.size

    def _compare(self, data: bytes, header: BatchHeader) -> None:
        self.is_exact = self.is_exact and header.base_offset == self.end_offset
        self.end_offset = header.next_offset
        largest = self._build.add(header)
        is_indexed = self._offsets.batch(self.position, header)
        self._times.batch(header, largest, is_indexed=is_indexed)
        marker = None
        if header.is_control and header.producer_id != NO_PRODUCER:
            marker = marker_in(data[header.position : header.end])
        ended = self.states.note(header, marker)
        if ended is not None:
            self._ended.append(ended)

    def _damaged(self, reason: str) -> None:
        self.is_exact = False
        found = f"a damaged one ({reason})"
        self._damage.append(LogFault(self.segment.log.path, self.position, "a sound batch", found))

    def _fault(self, path: str, position: int, expected: str, found: str) -> None:
        self._faults.setdefault(path, LogFault(path, position, expected, found))

    # --- files ---

    def _read_offsets(self, disk: Disk) -> OffsetIndex:
        path = self.segment.indexes.offsets.path
        try:
            return OffsetIndex.decode(disk.read_bytes(path), self._size)
        except (FileMissing, CorruptIndex) as error:
            self._fault(path, 0, "an offset index", _said(error))
            return OffsetIndex()

    def _read_times(self, disk: Disk) -> TimeEntries:
        path = self.segment.indexes.times.path
        try:
            return TimeEntries.decode(disk.read_bytes(path))
        except (FileMissing, CorruptIndex) as error:
            self._fault(path, 0, "a time index", _said(error))
            return TimeEntries()

    def _read_transactions(self, disk: Disk) -> bytes:
        path = self.segment.transactions.path
        try:
            return disk.read_bytes(path)
        except FileMissing:
            return b""

    def _compare_transactions(self, wanted: tuple[AbortedTransaction, ...]) -> None:
        """A segment without aborted transactions has no file."""
        path, content = self.segment.transactions.path, self._transactions
        try:
            found = decode_entries(content)
        except CorruptTransactionIndex as error:
            self._fault(path, 0, "a transaction index", str(error))
            return
        if self.is_exact:
            pairs = enumerate(zip((*found, None), (*wanted, None), strict=False))
            number = next((number for number, (one, other) in pairs if one != other), None)
            if number is not None:
                expected, entry = (str(each[number]) if number < len(each) else "its end" for each in (wanted, found))
                self._fault(path, number * TRANSACTION_BYTES, expected, entry)
        elif self._noted is not None and (len(found), crc32c(content)) != self._noted:
            noted = f"{self._noted[0]} entries with the checksum {self._noted[1]}, as the log noted"
            self._fault(path, 0, noted, f"{len(found)} entries with the checksum {crc32c(content)}")


def _said(error: Exception) -> str:
    return "no file" if isinstance(error, FileMissing) else str(error)
