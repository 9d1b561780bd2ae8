"""Which transactions are open in a log, and which were aborted, from its batches alone; and the `.txnindex` files.

A transaction of a producer begins with its first transactional batch and ends with its marker. An aborted one has an
entry in the index of the segment that holds its marker: its first offset, the marker's offset, and the last stable
offset after it, which is the first offset of the transactions that are still open, or one past the marker
(Kafka's `ProducerStateManager`). A marker without a transaction has no entry.

A log whose first records were deleted, or that was compacted, does not hold the whole story: what an entry says about
records that are not there is then believed.

`transaction-index-checkpoint` (`check_index_note`) notes how many entries each `.txnindex` of a log has, and their
checksum (ours).
"""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords, iter_batch
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.format.crc import crc32c
from quorumlog_storage.audit.batches import FoundBatch
from quorumlog_storage.audit.entries import TRANSACTION_ENTRY, TRANSACTION_VERSION, AbortedTransaction, read_entries
from quorumlog_storage.audit.files import TRANSACTION_INDEX, file_name
from quorumlog_storage.audit.finding import Findings
from quorumlog_storage.files.disk import Disk, File, FileMissing
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint, parse_checkpoint, parse_number

MAX_OPEN = 100_000  # transactions at a time; of more, the indexes are not checked


class OpenTransactions:
    """The transactions of one log. first: by producer id, the first offset. is_complete: see `AbortedIndexCheck`."""

    def __init__(self, is_complete: bool) -> None:
        self.first: dict[int, Offset] = {}
        self.is_complete = is_complete

    def batch(self, found: FoundBatch) -> tuple[EndTxnMarker, Offset | None] | None:
        """(marker, first offset of the transaction that it ends) for a marker; the offset is None for none known."""
        header = found.header
        if header.is_control:
            marker = _marker_of(found)
            return None if marker is None else (marker, self.first.pop(header.producer_id, None))
        if header.is_transactional and len(self.first) < MAX_OPEN:
            self.first.setdefault(header.producer_id, header.base_offset)
        self.is_complete = self.is_complete and len(self.first) < MAX_OPEN
        return None

    def last_stable_offset(self, marker_offset: Offset) -> Offset:
        """Right after a marker."""
        return min(self.first.values(), default=marker_offset + 1)


class AbortedIndexCheck:
    """The `.txnindex` of one segment, fed with each aborted transaction whose marker the segment holds.

    file: None where there is none; then only the number of what it lacks is told, since it is built again.
    is_exact, of its methods: the log holds the whole story, so that each entry can be computed.
    """

    def __init__(self, path: str, file: File | None, findings: Findings) -> None:
        self._path, self._findings = path, findings
        self._size = 0 if file is None else file.size()
        self._has_file = file is not None
        entries = iter(()) if file is None else read_entries(file, self._size, TRANSACTION_ENTRY)
        self._entries: Iterator[tuple[int, tuple[int, ...]]] = entries
        self._next = self._take()
        self._missing = 0

    def aborted(self, wanted: AbortedTransaction, *, is_known: bool, is_exact: bool) -> None:
        """is_known: its first offset was seen, so that there must be an entry, unless compaction took its records."""
        while self._next is not None and self._next[1].last_offset < wanted.last_offset:
            self._unexpected(is_exact)
        if self._next is None or self._next[1].last_offset != wanted.last_offset:
            if is_known and is_exact:
                self._lacks(wanted)
            return
        at, entry = self._next
        is_right = entry == wanted if is_exact and is_known else self._may_be(entry, wanted)
        if not is_right:
            self._fault("entry", at, wanted.last_offset, str(tuple(wanted)), str(tuple(entry)))
        self._next = self._take()

    def finish(self, is_exact: bool) -> None:
        while self._next is not None:
            self._unexpected(is_exact)
        if self._missing and not self._has_file:
            text = f"no file, though {self._missing} transactions were aborted here; it is built again when needed"
            self._findings.note("txnindex-missing", self._path, text)
        if self._size % TRANSACTION_ENTRY.size:
            size = TRANSACTION_ENTRY.size
            self._findings.add(
                "txnindex-size", self._path, expected=f"entries of {size} bytes", found=f"{self._size} bytes"
            )

    def _take(self) -> tuple[int, AbortedTransaction] | None:
        found = next(self._entries, None)
        return None if found is None else (found[0], AbortedTransaction(*found[1]))

    def _may_be(self, entry: AbortedTransaction, wanted: AbortedTransaction) -> bool:
        """Of a transaction that began where records are missing now. One that is open may have begun before it."""
        return (
            entry.version == TRANSACTION_VERSION
            and entry.producer_id == wanted.producer_id
            and entry.first_offset <= wanted.first_offset
            and 0 <= entry.last_stable_offset <= wanted.last_offset + 1
        )

    def _unexpected(self, is_exact: bool) -> None:
        assert self._next is not None
        at, entry = self._next
        is_possible = entry.version == TRANSACTION_VERSION and 0 <= entry.first_offset <= entry.last_offset
        if is_exact or not is_possible:
            self._fault("entry", at, entry.last_offset, "the marker of an abort", str(tuple(entry)))
        self._next = self._take()

    def _lacks(self, wanted: AbortedTransaction) -> None:
        self._missing += 1
        if self._has_file:
            at = self._size if self._next is None else self._next[0]
            self._fault("lacks", at, wanted.last_offset, str(tuple(wanted)), "no entry")

    def _fault(self, what: str, at: int, offset: Offset, expected: str, found: str) -> None:
        self._findings.add(f"txnindex-{what}", self._path, position=at, offset=offset, expected=expected, found=found)


def _marker_of(found: FoundBatch) -> EndTxnMarker | None:
    """None for control batches of other kinds, and for one that cannot be read, which is told elsewhere."""
    if not found.data or found.header.count == 0:
        return None
    try:
        for record in iter_batch(found.data, found.header):
            said = decode_control(record.key, record.value)
            return said if isinstance(said, EndTxnMarker) else None
    except CorruptRecords:
        return None
    return None


def check_index_note(disk: Disk, directory: str, name: str, bases: list[Offset], findings: Findings) -> None:
    """bases: of the log's segments. Where note and index disagree, the index is made again. Raises DiskError."""
    path = f"{directory}/{name}"
    try:
        lines = parse_checkpoint(path, disk.read_bytes(path))
        noted = [[parse_number(path, number, word) for word in words] for number, words in enumerate(lines, 3)]
    except CorruptCheckpoint as error:
        findings.add("txnindex-note", path, expected="a line for each index", found=error.reason)
        return
    for words in noted:
        if len(words) != 3 or words[0] not in bases:
            findings.add("txnindex-note", path, expected="a segment's base, entries and checksum", found=str(words))
            continue
        base, entries, checksum = words
        try:
            content = disk.read_bytes(f"{directory}/{file_name(base, TRANSACTION_INDEX)}")
        except FileMissing:
            content = b""
        found = (len(content) // TRANSACTION_ENTRY.size, crc32c(content))
        if found != (entries, checksum):
            text = f"{entries} entries with checksum {checksum:#010x}"
            is_there = f"{found[0]} with {found[1]:#010x}"
            findings.add("txnindex-note", path, offset=base, expected=text, found=is_there)
