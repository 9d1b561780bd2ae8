"""How the transactions of a log ended, read from its control batches: the log is the truth, its index a cache.

A transaction begins with the first batch of a producer that has none open. A transactional batch belongs to the first
marker of its producer behind it. A round only touches what lies below the
last stable offset, where every transaction has ended; its marker may lie above the round's own end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.control import ABORT, COMMIT
from quorumlog.records.format.batch import MAGIC, BatchHeader, parse_header
from quorumlog_storage.cleaning.batches import SourceFile
from quorumlog_storage.cleaning.record_table import RecordTable
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.transaction_index import AbortedTransaction


class Outcomes:
    """Markers by producer. `began` and `ended` are called in the order of the offsets.

    aborted: the transactions that were aborted and of which data is there, by the offset of the marker.
    """

    def __init__(self) -> None:
        self.aborted: dict[Offset, AbortedTransaction] = {}
        self._offsets: dict[int, list[Offset]] = {}
        self._aborts: dict[int, bytearray] = {}
        self._open: dict[int, Offset] = {}  # first offsets by producer; in the order of these offsets

    def began(self, producer_id: int, offset: Offset) -> None:
        """There is a transactional batch, perhaps not the first."""
        self._open.setdefault(producer_id, offset)

    def ended(self, producer_id: int, offset: Offset, is_abort: bool) -> None:
        self._offsets.setdefault(producer_id, []).append(offset)
        self._aborts.setdefault(producer_id, bytearray()).append(is_abort)
        first = self._open.pop(producer_id, None)
        if is_abort and first is not None:
            stable = next(iter(self._open.values()), offset + 1)
            self.aborted[offset] = AbortedTransaction(producer_id, first, offset, stable)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch is data of a transaction that was aborted."""
        if not header.is_transactional or header.is_control:
            return False
        offsets = self._offsets.get(header.producer_id, ())
        found = bisect_right(offsets, header.last_offset)
        return found < len(offsets) and bool(self._aborts[header.producer_id][found])


class Survey:
    """The headers of all that a round may touch, as far as they matter.

    `read` looks at the part of a log that pass 1 does not read. Pass 1 itself meets the headers of the rest, and most
    logs hold neither a transaction nor an old batch: then nothing is read twice. Where it meets a transactional batch,
    `finish` reads on from there up to the last stable offset, because the outcome may stand anywhere behind it.

    old: base offsets of segments with a batch of an older format. has_transactions: one has begun in what was read.
    """

    def __init__(self) -> None:
        self.outcomes = Outcomes()
        self.old: set[Offset] = set()
        self.is_complete = False
        self._table = RecordTable()
        self.has_transactions = False

    def read(self, disk: Disk, sources: Iterable[SourceFile]) -> Iterator[int]:
        """Yields bytes read, after each segment. Raises CorruptBatch, DiskError."""
        for source in sources:
            self._take(disk, source)
            yield source.walk_bytes

    def finish(self, disk: Disk, sources: Iterable[SourceFile], beyond: Iterable[SourceFile]) -> Iterator[int]:
        """The same for all the rest. beyond: what follows the sources; read only if there is a transaction at all."""
        assert not self.is_complete
        self.is_complete = True
        yield from self.read(disk, sources)
        if self.has_transactions:
            yield from self.read(disk, beyond)

    def _take(self, disk: Disk, source: SourceFile) -> None:
        for position, header in source.walk(disk):
            if header.magic < MAGIC:
                self.old.add(source.base_offset)
            elif not header.is_transactional:
                continue
            elif not header.is_control:
                self.has_transactions = True
                self.outcomes.began(header.producer_id, header.base_offset)
            elif header.count:
                kind = _kind(source, position, source.read(disk, position, header.size), self._table)
                if kind in (ABORT, COMMIT):
                    self.outcomes.ended(header.producer_id, header.base_offset, kind == ABORT)


def _kind(source: SourceFile, position: int, batch: bytes, table: RecordTable) -> int:
    """The type of a control batch, the second int16 of its key; -1 without one. Raises CorruptBatch."""
    try:
        table.read(batch, parse_header(batch))
    except CorruptRecords as error:
        raise CorruptBatch(source.path, position, error.reason) from error
    key = table.keys[0]
    return -1 if table.key_ends[0] - key < 4 else int.from_bytes(table.data[key + 2 : key + 4], "big")
