"""The work with the keys of records, which is most of a round: in pass 1 into the map, in pass 2 out of it.

It has two forms, which decide alike: this one, and a compiled one (`compiled_keys.py`), which the cleaner's process
takes for larger rounds where Numba is installed (`quorumlog_storage/edge/cleaner.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from quorumlog.ids import Offset
from quorumlog.records.format.batch import BatchHeader
from quorumlog_storage.cleaning.batches import Scan, Scanned
from quorumlog_storage.cleaning.marks import GONE, NEEDS_HORIZON, STAYS, Marks
from quorumlog_storage.cleaning.offset_map import NO_ROOM, NOT_FOUND, OffsetMap
from quorumlog_storage.cleaning.record_table import NO_KEY, RecordTable
from quorumlog_storage.cleaning.retention import Kept, has_passed, kept_records, marked_records
from quorumlog_storage.segment.batch import StoredBatch


class KeysSpec(NamedTuple):
    """memory_bytes, load_factor, hash_key: of the map; the key has 16 random bytes. now_ms: wall clock."""

    memory_bytes: int
    load_factor: float
    hash_key: bytes
    now_ms: int


class Keys(Protocol):
    """Records before the first mark are not dirty and are not put. Headers are those of batches with records that are
    no markers, in the order of their offsets.

    keyless: records without a key that were met below the end of the map.
    """

    @property
    def keyless(self) -> int: ...

    def __len__(self) -> int:
        """How many keys the map holds."""
        ...

    def index(self, data: bytes, headers: Sequence[BatchHeader]) -> Offset:
        """Pass 1. NOT_FOUND, or the offset of the first record for which the map has no room. Raises CorruptRecords."""
        ...

    def look(self, data: bytes, headers: Sequence[BatchHeader], latest: Offset) -> list[Kept]:
        """Pass 2: what stays of each batch. latest: the last offset that the map covers. Raises CorruptRecords."""
        ...

    @property
    def scan(self) -> Scan | None:
        """How to find the batches of a piece at once; None: one by one."""
        ...

    def index_scanned(self, data: bytes, scanned: Scanned) -> Offset:
        """`index` of all its batches, which are simple."""
        ...

    def sift(self, data: bytes, scanned: Scanned, latest: Offset) -> Iterator[Sifted]:
        """`look` at all its batches, which are simple."""
        ...


Sifted = StoredBatch | tuple[BatchHeader, Kept]  # a batch of which everything stays; one of which something goes
MakeKeys = Callable[[KeysSpec, Marks], Keys]


class PlainKeys:
    """See `Keys`."""

    scan = None  # so nothing is ever scanned here

    def __init__(self, spec: KeysSpec, marks: Marks) -> None:
        self.keyless = 0
        self.offsets = OffsetMap(spec.memory_bytes, spec.load_factor, spec.hash_key)
        self._spec, self._marks = spec, marks
        self._table = RecordTable()

    def __len__(self) -> int:
        return len(self.offsets)

    def index(self, data: bytes, headers: Sequence[BatchHeader]) -> Offset:
        for header in headers:
            self._table.read(data, header)
            full = self._put(header)
            if full >= 0:
                return full
        return NOT_FOUND

    def look(self, data: bytes, headers: Sequence[BatchHeader], latest: Offset) -> list[Kept]:
        return [self._look(data, header, latest) for header in headers]

    def index_scanned(self, data: bytes, scanned: Scanned) -> Offset:
        return self.index(data, scanned.headers())

    def sift(self, data: bytes, scanned: Scanned, latest: Offset) -> Iterator[Sifted]:
        for header in scanned.headers():
            yield header, self._look(data, header, latest)

    def _put(self, header: BatchHeader) -> Offset:
        table, put, first_dirty = self._table, self.offsets.put, self._marks.first
        data, deltas, keys, key_ends, has_value = table.data, table.deltas, table.keys, table.key_ends, table.has_value
        states, marked = self._marks.states, len(self._marks.states)
        tombstone = NEEDS_HORIZON
        if header.has_delete_horizon:
            tombstone = GONE if has_passed(header, self._spec.now_ms) else STAYS
        keyless = 0
        for row in range(table.count):
            offset = header.base_offset + deltas[row]
            if offset < first_dirty:
                continue
            key = keys[row]
            if key == NO_KEY:
                keyless += 1
                continue
            before = put(data[key : key_ends[row]], offset)
            if before == NO_ROOM:
                return offset
            if offset - first_dirty < marked:
                states[offset - first_dirty] = STAYS if has_value[row] else tombstone
            if 0 <= before - first_dirty < marked:
                states[before - first_dirty] = GONE
        if self._marks.covers(header.base_offset, header.next_offset):
            self.keyless += keyless  # otherwise pass 2 looks into it, and counts them
        return NOT_FOUND

    def _look(self, data: bytes, header: BatchHeader, latest: Offset) -> Kept:
        marks, first, end = self._marks, header.base_offset, header.next_offset
        is_marked = end - 1 <= latest and marks.covers(first, end)
        if is_marked:
            count, needs_horizon = marks.stay(first, end), marks.need_horizon(first, end)
            if count == 0 or (count == header.count and not needs_horizon):
                return Kept([], count, False, 0)
        self._table.read(data, header)
        if is_marked:
            return marked_records(self._table, marks.states, first - marks.first)
        kept = kept_records(
            self._table, first, self.offsets, latest, drop_tombstones=has_passed(header, self._spec.now_ms)
        )
        self.keyless += kept.keyless
        return kept
