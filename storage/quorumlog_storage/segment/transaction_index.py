"""Transaction index of one segment: the aborted transactions whose markers lie in it.

On disk, `.txnindex`: entries of 34 bytes, big-endian: version, producer id, first offset, offset of the marker, last
stable offset behind it (Kafka's `AbortedTxn`). In memory the same bytes. The file is made only where there is an entry.

Unlike the other indexes it cannot be made from its segment alone: a transaction may have begun in an earlier one. So
the log's producer state fills it (quorumlog_storage/producers/log_producers.py), at each append and where it has to be
made again. And no look-up shows that one is missing, because most segments have none: the log notes, durably, how long
each one is (quorumlog_storage/producers/index_note.py).

One thread changes an index, any may look things up meanwhile: bytes are only added to, or replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.format.batch import CONTROL, NO_PRODUCER
from quorumlog.records.format.crc import crc32c
from quorumlog_storage.files.disk import Disk, FileMissing, write_fully
from quorumlog_storage.segment.log_file import CorruptBatch, IndexedBatch, LogFile, suffixed

VERSION = 0
ENTRY_BYTES = 34
INDEX_OVERHEAD_BYTES = 256  # what a loaded index takes beside its entries, about

_ENTRY = Struct(">hqqqq")
_MARKER_OFFSET = Struct(">q")
_MARKER_AT = 18  # in an entry

assert _ENTRY.size == ENTRY_BYTES


class AbortedTransaction(NamedTuple):
    """last_offset: of the marker. last_stable_offset: where the earliest transaction that was open then begins."""

    producer_id: int
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


class CorruptTransactionIndex(Exception):
    """The content is impossible, or does not agree with the log. The log's producer state makes the index again."""


def encode_entries(entries: Sequence[AbortedTransaction]) -> bytes:
    return b"".join([_ENTRY.pack(VERSION, *entry) for entry in entries])


def decode_entries(content: bytes | bytearray) -> list[AbortedTransaction]:
    """Raises CorruptTransactionIndex for a torn file, another version, offsets that cannot be a transaction's, markers
    that do not rise."""
    if len(content) % ENTRY_BYTES:
        raise CorruptTransactionIndex(f"{len(content)} bytes are not a whole number of entries")
    found, before = [], -1
    for version, *fields in _ENTRY.iter_unpack(content):
        entry = AbortedTransaction(*fields)
        if version != VERSION:
            raise CorruptTransactionIndex(f"an entry of version {version}")
        if not 0 <= entry.first_offset < entry.last_offset or entry.producer_id < 0 or before >= entry.last_offset:
            raise CorruptTransactionIndex(f"{entry} behind a marker at {before}")
        found.append(entry)
        before = entry.last_offset
    return found


class TransactionIndexFile:
    """A `SegmentCache`, and a `bounded.Resident`: entries that the file holds as well may leave the memory.

    must_build: only the producer state can say what belongs here (`replace`). Until then nothing is looked up, and what
    markers add is left out.
    is_trusted: the entries came from the producer state, or are as it left them. Else a reader compares them with the
    log first (quorumlog_storage/log/aborted.py).
    """

    def __init__(self, disk: Disk, live_path: str, base_offset: Offset, log: LogFile, suffix: str = "") -> None:
        self.path = suffixed(live_path, suffix)
        self.base_offset = base_offset
        self._must_build = self._is_noted = False  # noted: only the entries of the markers just noted are missing
        self.is_trusted = False
        self.was_used = False
        self._live_path = live_path
        self._disk, self._log = disk, log
        self._bound = disk.resources.indexes
        self._content: bytearray | None = None  # None: not loaded
        self._has_entries: bool | None = None  # None: not known yet
        self._is_ahead = False  # the memory holds what the file lacks
        self._is_gone = False
        self._left: tuple[int, int] | None = None  # size and CRC-32C of what left the memory: the file must hold it

    # --- entries ---

    @property
    def has_entries(self) -> bool:
        """Known without loading them."""
        if self._has_entries is None:
            self._has_entries = self._disk.exists(self.path)
        return self._has_entries

    @property
    def is_loaded(self) -> bool:
        """A look-up reads no file."""
        return self._content is not None or not self.has_entries

    @property
    def fingerprint(self) -> tuple[int, int]:
        """(entries, CRC-32C of them all). Raises CorruptTransactionIndex."""
        content = self._loaded()
        return len(content) // ENTRY_BYTES, crc32c(content)

    @property
    def must_build(self) -> bool:
        return self._must_build

    @must_build.setter
    def must_build(self, value: bool) -> None:
        self._must_build, self._is_noted = value, False

    def add(self, entries: Sequence[AbortedTransaction]) -> None:
        """What the markers that were noted last have aborted, as the producer state says."""
        if self._must_build and not self._is_noted:
            return  # the writer makes all of it with its next checkpoint, these entries, too
        self.must_build = False
        if not entries:
            return
        self._is_ahead = True  # first: from now on no other thread lets it leave
        try:
            self._loaded().extend(encode_entries(entries))
        except CorruptTransactionIndex:
            self.must_build = True
        else:
            self._has_entries = True
            self._keep()

    def replace(self, entries: Sequence[AbortedTransaction]) -> None:
        """What the log says, from its first byte on."""
        self._is_ahead, self._left = True, None
        self._content = bytearray(encode_entries(entries))
        self._has_entries = bool(entries)
        self.must_build, self.is_trusted = False, True
        self._keep()

    def entries(self) -> list[AbortedTransaction]:
        """All of them. Raises CorruptTransactionIndex, DiskError."""
        return decode_entries(self._loaded())

    def collect(self, fetch_offset: Offset, end_offset: Offset) -> tuple[list[AbortedTransaction], bool]:
        """Those that end at or after `fetch_offset` and begin before `end_offset` (exclusive), in order of their ends.

        And whether that is all: False if later segments may hold more. Raises CorruptTransactionIndex, DiskError.
        """
        if self.must_build:
            raise CorruptTransactionIndex(f"{self.path} has to be made again")
        content = self._loaded()
        self.was_used = True
        found = []
        for number in range(self._first_at(content, fetch_offset), len(content) // ENTRY_BYTES):
            entry = AbortedTransaction(*_ENTRY.unpack_from(content, number * ENTRY_BYTES)[1:])
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found, True
        return found, False

    # --- SegmentCache ---

    @property
    def size(self) -> int:
        return len(self._loaded())

    @property
    def is_held(self) -> bool:
        return self._is_ahead

    def create(self) -> None:
        self._content, self._has_entries = bytearray(), False
        self._is_ahead, self.must_build, self.is_trusted = True, False, True

    def note(self, batches: Sequence[IndexedBatch], position: int) -> None:
        """A marker needs the producer state to be understood: `add` follows, except in a scan."""
        for batch in batches:
            if batch.attributes & CONTROL and batch.producer_id != NO_PRODUCER:
                if not self._must_build:
                    self._must_build = self._is_noted = True
                return

    def truncate_to(self, position: int) -> None:
        if not self.has_entries and not self.must_build:
            return
        try:
            content = self._loaded()
            kept = self._first_at(content, self._offset_at(position)) * ENTRY_BYTES
        except (CorruptTransactionIndex, CorruptBatch):
            self.must_build = True
            content, kept = bytearray(), 0
        self._is_ahead = True
        self._content, self._has_entries = content[:kept], kept > 0
        self._keep()

    def flush(self) -> None:
        """Write the file for the next start; not synced, the note of its length shows a lost one. No file without
        entries. What has to be built is not written."""
        if not self._is_ahead or self.must_build:
            return
        content = self._loaded()
        if content:
            file = self._disk.open(self.path, create=True)
            write_fully(file, self.path, [bytes(content)], 0)
            file.truncate(len(content))
            file.close()
        elif self._disk.exists(self.path):
            self._disk.unlink(self.path)
        self._is_ahead = False

    def rename(self, suffix: str) -> None:
        renamed = suffixed(self._live_path, suffix)
        if self._disk.exists(self.path):
            self._disk.rename(self.path, renamed)
        self.path = renamed

    def remove(self) -> None:
        """What the memory holds stays: the segment may live on."""
        self._is_ahead = self._is_ahead or self._content is not None
        self._bound.forget(self)
        if self._disk.exists(self.path):
            self._disk.unlink(self.path)

    def abandon(self) -> None:
        """The name is about to be another file's."""
        self._is_gone = True
        self._bound.forget(self)

    # --- bounded.Resident ---

    @property
    def weight(self) -> int:
        return INDEX_OVERHEAD_BYTES + len(self._content or b"")

    def leave(self) -> None:
        content = self._content
        if content is not None:
            self._left = len(content), crc32c(content)
        self._content = None

    # --- details ---

    def _keep(self) -> None:
        if not self._is_gone and self._has_entries:
            self._bound.admit(self)

    def _loaded(self) -> bytearray:
        content = self._content
        if content is not None:
            return content
        if not self.has_entries:
            content = bytearray()
        else:
            if self._is_gone:
                raise FileMissing(self.path, "open")
            try:
                content = bytearray(self._disk.read_bytes(self.path))
            except FileMissing as error:
                raise CorruptTransactionIndex(f"{self.path} is gone") from error
            decode_entries(content)
            if self._left is not None and (len(content), crc32c(content)) != self._left:
                raise CorruptTransactionIndex(f"{self.path} is not what was written there")
        self._content = content
        self._keep()
        return content

    def _first_at(self, content: bytearray, offset: Offset) -> int:
        """Number of the first entry whose marker lies at or after `offset`."""
        low, high = 0, len(content) // ENTRY_BYTES
        while low < high:
            middle = (low + high) // 2
            (marker,) = _MARKER_OFFSET.unpack_from(content, middle * ENTRY_BYTES + _MARKER_AT)
            low, high = (middle + 1, high) if marker < offset else (low, middle)
        return low

    def _offset_at(self, position: int) -> Offset:
        """Base offset of the batch at a position of the log file; where none begins, one past all of them."""
        if position >= self._log.size:
            return 1 << 62
        _, header = next(self._log.walk(position, self._log.size))
        return header.base_offset
