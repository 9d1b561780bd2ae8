"""The compiled form of `keys.py`: the same decisions for a whole piece at once. Needs numpy and Numba.

Only batches without compression are taken together; compressed ones come one by one, so that not more than one is held
decompressed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from struct import Struct
from typing import NoReturn

import numpy as np

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL,
    CRC_START,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    Codec,
)
from quorumlog_storage.cleaning import key_kernels as kernels
from quorumlog_storage.cleaning.batches import Scanned
from quorumlog_storage.cleaning.keys import KeysSpec, Sifted
from quorumlog_storage.cleaning.marks import GONE, NEEDS_HORIZON, STAYS, Marks
from quorumlog_storage.cleaning.offset_map import NOT_FOUND, dimensions
from quorumlog_storage.cleaning.record_table import RecordTable, plain_records
from quorumlog_storage.cleaning.retention import Kept, has_passed
from quorumlog_storage.segment.batch import StoredBatch

_KEY = Struct("<QQ")
_SPECIAL = CODEC_MASK | TRANSACTIONAL | CONTROL

Rows = np.ndarray[tuple[int, int], np.dtype[np.int64]]


class ScannedRows:
    """A `Scanned`. rows: with the columns of `key_kernels.py`."""

    def __init__(self, rows: Rows) -> None:
        last = rows[-1]
        self.rows = rows
        self._headers: list[BatchHeader] = []
        self.first, self.size = int(rows[0, kernels.BASE_OFFSET]), int(last[kernels.END])
        self.end_offset = int(last[kernels.BASE_OFFSET] + last[kernels.LAST_DELTA]) + 1
        self.records = int(rows[:, kernels.COUNT].sum())
        self.is_simple = not (rows[:, kernels.ATTRIBUTES] & _SPECIAL).any() and bool(rows[:, kernels.COUNT].all())

    def checksums(self) -> Iterable[tuple[int, int, int]]:
        rows = self.rows
        starts = rows[:, kernels.POSITION] + CRC_START
        return zip(starts.tolist(), rows[:, kernels.END].tolist(), rows[:, kernels.CRC].tolist(), strict=True)

    def headers(self) -> list[BatchHeader]:
        if not self._headers:
            self._headers = [header_of(row) for row in self.rows.tolist()]
        return self._headers


def header_of(row: list[int]) -> BatchHeader:
    position, end = row[kernels.POSITION], row[kernels.END]
    return BatchHeader(
        base_offset=row[kernels.BASE_OFFSET],
        batch_length=end - position - LOG_OVERHEAD,
        leader_epoch=row[kernels.LEADER_EPOCH],
        magic=MAGIC,
        crc=row[kernels.CRC],
        attributes=row[kernels.ATTRIBUTES],
        last_offset_delta=row[kernels.LAST_DELTA],
        base_timestamp=row[kernels.BASE_TIME],
        max_timestamp=row[kernels.MAX_TIME],
        producer_id=row[kernels.PRODUCER],
        producer_epoch=row[kernels.PRODUCER_EPOCH],
        base_sequence=row[kernels.SEQUENCE],
        count=row[kernels.COUNT],
        position=position,
        size=end - position,
    )


def stored_of(data: memoryview, row: list[int]) -> StoredBatch:
    position, end, base_offset = row[kernels.POSITION], row[kernels.END], row[kernels.BASE_OFFSET]
    return StoredBatch(
        (data[position:end],),
        end - position,
        base_offset,
        base_offset + row[kernels.LAST_DELTA],
        row[kernels.LEADER_EPOCH],
        row[kernels.MAX_TIME],
        row[kernels.PRODUCER],
        row[kernels.PRODUCER_EPOCH],
        row[kernels.SEQUENCE],
        row[kernels.ATTRIBUTES],
        row[kernels.BASE_TIME],
        row[kernels.COUNT],
    )


class CompiledKeys:
    """See `Keys`."""

    def __init__(self, spec: KeysSpec, marks: Marks) -> None:
        assert len(spec.hash_key) == _KEY.size
        slots, capacity = dimensions(spec.memory_bytes, spec.load_factor)
        self._key = np.array(_KEY.unpack(spec.hash_key), np.uint64)
        self._words = np.zeros(3 * slots, np.uint64)  # as in `OffsetMap`
        self._states = np.frombuffer(marks.states, np.uint8) if marks.states else np.zeros(0, np.uint8)
        self._numbers = np.zeros(kernels.NUMBERS, np.int64)
        self._numbers[kernels.SLOTS], self._numbers[kernels.CAPACITY] = slots, capacity
        self._numbers[kernels.FIRST_MARK] = marks.first
        self._ranges = np.zeros(0, np.int64)
        self._scanned = np.zeros((0, kernels.COLUMNS), np.int64)
        self._now_ms = spec.now_ms

    def __len__(self) -> int:
        return int(self._numbers[kernels.SIZE])

    @property
    def keyless(self) -> int:
        return int(self._numbers[kernels.KEYLESS])

    def index(self, data: bytes, headers: Sequence[BatchHeader]) -> Offset:
        for some, plain, rows in self._rows(data, headers):
            answer = kernels.index_rows(_array(plain), rows, self._words, self._states, self._numbers, self._key)
            if answer == kernels.BAD:
                self._refuse(data, some)
            if answer >= 0:
                return int(answer)
        return NOT_FOUND

    def scan(self, data: bytes) -> ScannedRows | None:
        most = len(data) // BATCH_OVERHEAD
        if len(self._scanned) < most:
            self._scanned = np.zeros((most, kernels.COLUMNS), np.int64)
        count = kernels.scan_rows(_array(data), self._scanned, self._now_ms)
        return ScannedRows(self._scanned[:count].copy()) if count else None

    def index_scanned(self, data: bytes, scanned: Scanned) -> Offset:
        assert isinstance(scanned, ScannedRows)
        answer = kernels.index_rows(_array(data), scanned.rows, self._words, self._states, self._numbers, self._key)
        if answer == kernels.BAD:
            self._refuse(data, scanned.headers())
        return int(answer) if answer >= 0 else NOT_FOUND

    def sift(self, data: bytes, scanned: Scanned, latest: Offset) -> Iterator[Sifted]:
        assert isinstance(scanned, ScannedRows)
        self._numbers[kernels.LATEST] = latest
        looked = self._look(data, scanned.rows)
        if looked is None:
            self._refuse(data, scanned.headers())
        found, ranges = looked
        view = memoryview(data)
        for row, (staying, tombstones, keyless, largest, start, end) in zip(scanned.rows.tolist(), found, strict=True):
            if staying == row[kernels.COUNT] and not tombstones:
                yield stored_of(view, row)
            else:
                kept = Kept(ranges[start:end], staying, tombstones > 0, keyless, data, largest)
                yield header_of(row), kept

    def look(self, data: bytes, headers: Sequence[BatchHeader], latest: Offset) -> list[Kept]:
        self._numbers[kernels.LATEST] = latest
        kept = []
        for some, plain, rows in self._rows(data, headers):
            looked = self._look(plain, rows)
            if looked is None:
                self._refuse(data, some)
            found, ranges = looked
            for staying, tombstones, keyless, largest, start, end in found:
                kept.append(Kept(ranges[start:end], staying, tombstones > 0, keyless, plain, largest))
        return kept

    def _look(self, data: bytes | bytearray, rows: Rows) -> tuple[list[list[int]], list[int]] | None:
        """Columns and ranges as in `key_kernels.py`; None: see `_refuse`."""
        found = np.empty((len(rows), kernels.FOUND_COLUMNS), np.int64)
        places = 2 * int(rows[:, kernels.COUNT].sum())
        if len(self._ranges) < places:
            self._ranges = np.zeros(places, np.int64)
        answer = kernels.look_rows(
            _array(data), rows, self._words, self._states, self._numbers, self._key, found, self._ranges
        )
        if answer == kernels.BAD:
            return None
        return found.tolist(), self._ranges[: found[-1, kernels.RANGES_TO]].tolist()

    def _rows(
        self, data: bytes, headers: Sequence[BatchHeader]
    ) -> Iterator[tuple[list[BatchHeader], bytes | bytearray, Rows]]:
        """(batches, the bytes with their records, their rows), one or many at a time. Raises CorruptRecords."""
        for codec, same in groupby(headers, key=lambda header: header.codec):
            if codec == Codec.NONE:
                some = list(same)
                yield some, data, np.array([self._row(one, one.position + BATCH_OVERHEAD, one.end) for one in some])
                continue
            for header in same:
                plain = plain_records(data, header)
                yield [header], plain, np.array([self._row(header, 0, len(plain))])

    def _row(self, header: BatchHeader, start: int, end: int) -> tuple[int, ...]:
        """Columns as in `key_kernels.py`. Raises CorruptRecords if there cannot be so many records."""
        if header.count * kernels.MIN_RECORD_BYTES > end - start:
            raise CorruptRecords(header.position, f"{header.count} records in {end - start} bytes")
        tombstone, drops = NEEDS_HORIZON, False
        if header.has_delete_horizon:
            drops = has_passed(header, self._now_ms)
            tombstone = GONE if drops else STAYS
        return start, end, header.count, header.last_offset_delta, header.base_offset, tombstone, drops

    def _refuse(self, data: bytes, headers: Sequence[BatchHeader]) -> NoReturn:
        """Say what is wrong with a batch, in the words of the plain form. Raises CorruptRecords."""
        header = headers[int(self._numbers[kernels.BAD_ROW])]
        RecordTable().read(data, header)
        raise CorruptRecords(header.position, "a timestamp is too long")  # which the table does not look at


def _array(data: bytes | bytearray) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Always readonly, so that the kernels are compiled for one type only."""
    return np.frombuffer(memoryview(data).toreadonly(), np.uint8)
