"""Looks at the records inside a produced batch, once, before it gets offsets (Kafka's `LogValidator`).

Checked: decompression within a limit; as many records as the header states and nothing after them; each record's
length, varints, header count and lengths; offset deltas 0, 1, 2 ...; timestamps within 64 bits; a key, where the topic
needs one. The bits of a record's attributes have no meaning and are not looked at, as in Kafka. What passes is what
`plain.decode_batch` decodes. Keys and values are neither copied nor decoded.

The work is cut into slices of a few milliseconds, so that a large batch does not hold up a node's loop, and a
decompressed batch is never held as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records.batch import BATCH_OVERHEAD, BatchHeader, Codec
from quorumlog.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, BadCompression, decompressed_pieces
from quorumlog.records.record_walk import HEADERS_PER_STEP, SAFE_BASE_TIMESTAMP, KeyMissing, unusual_record, walk_usual
from quorumlog.records.varint import VARINT_BYTES, Malformed, read_varint

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from quorumlog.records.buffers import Buffer

SLICE_BYTES = 1024 * 1024  # looked at between two steps
PIECE_COST_BYTES = 1024  # a decompressed piece counts for at least so much, also if it is empty
SLICE_RECORDS = 4_096  # walked over one by one between two steps
UNUSUAL_WORK = 8  # an unusual record takes as long as so many, and each of its headers as long as one


class InvalidRecord(ApiError):
    """A batch was refused because of what is inside. batch_index: number of the record in the batch; None: not one."""

    def __init__(self, message: str, batch_index: int | None) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)
        self.batch_index = batch_index


def check_records(
    buf: Buffer,
    header: BatchHeader,
    *,
    keys_required: bool = False,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Iterator[None]:
    """Checks the records of a batch that `validate_produced` accepted. Yields after each slice but the last.

    max_decompressed_bytes: by default the most that our readers decompress, so that what is stored can be read. A batch
    beyond it is refused before it is expanded further. Raises InvalidRecord.
    """
    walk = _Walk(header, keys_required)
    stored = memoryview(buf)[header.position + BATCH_OVERHEAD : header.end]
    taken_bytes = 0
    try:
        for piece in _pieces(header.codec, stored, max_decompressed_bytes):
            if taken_bytes >= SLICE_BYTES:
                yield
                taken_bytes = 0
            taken_bytes += max(len(piece), PIECE_COST_BYTES)
            yield from walk.take(piece)
        walk.finish()
    except BadCompression as error:
        raise InvalidRecord(str(error), None) from error
    except Malformed as error:
        raise InvalidRecord(str(error), walk.index if walk.index < header.count else None) from error
    except KeyMissing as error:
        raise InvalidRecord("a compacted topic accepts no record without a key", walk.index) from error


def passes_at_once(buf: Buffer, header: BatchHeader, *, keys_required: bool = False) -> bool:
    """True if `check_records` would accept the batch in one slice. False says nothing: ask `check_records`.

    Most batches are small, uncompressed and usual; this spares them the generators.
    """
    size = header.end - header.position - BATCH_OVERHEAD
    if header.codec != Codec.NONE or size > SLICE_BYTES or header.base_timestamp >= SAFE_BASE_TIMESTAMP:
        return False
    data = bytes(memoryview(buf)[header.position + BATCH_OVERHEAD : header.end])
    position, index, _ = walk_usual(data, 0, 0, header.count, SLICE_RECORDS, keys_required)
    return index == header.count and position == size


def _pieces(codec: int, stored: memoryview, max_bytes: int) -> Iterator[bytes]:
    if codec != Codec.NONE:
        for piece in decompressed_pieces(codec, stored, max_bytes):
            yield bytes(piece)
        return
    for begin in range(0, len(stored), SLICE_BYTES):
        yield bytes(stored[begin : begin + SLICE_BYTES])


class _Walk:
    """The place in a batch that is looked at piece by piece. A record that a piece cuts is kept until the next."""

    def __init__(self, header: BatchHeader, keys_required: bool) -> None:
        self.index = 0  # of the record that comes next
        self._count = header.count
        self._base_timestamp = header.base_timestamp
        self._keys_required = keys_required
        self._has_usual = header.base_timestamp < SAFE_BASE_TIMESTAMP
        self._work = SLICE_RECORDS  # left in this slice
        self._kept = bytearray()  # grows in place, because joining 100 MB takes 80 ms
        self._needed_bytes = 0  # with fewer, the next record is incomplete

    def take(self, piece: bytes) -> Iterator[None]:
        data: bytes | bytearray = piece
        if self._kept:
            self._kept += piece
            data = self._kept
            if len(data) < self._needed_bytes:
                return
        position = yield from self._walk(data)
        self._kept = bytearray(data[position:])
        self._needed_bytes = _needed(data, position)

    def finish(self) -> None:
        """Raises Malformed unless all records were found."""
        if self.index == self._count:
            return
        if self._kept:
            for _ in unusual_record(self._kept, 0, self.index, self._base_timestamp, self._keys_required):
                raise AssertionError("an incomplete record has no headers")
        raise Malformed(f"{self.index} records, the header states {self._count}")

    def _walk(self, data: bytes | bytearray) -> Generator[None, None, int]:
        """Returns the position of the first incomplete record."""
        position = 0
        while True:
            if self._has_usual:
                position, self.index, self._work = walk_usual(
                    data, position, self.index, self._count, max(0, self._work), self._keys_required
                )
            if self.index == self._count:
                if position < len(data):
                    raise Malformed(f"{len(data) - position} bytes after the last record")
                return position
            if self._work <= 0:
                yield
                self._work = SLICE_RECORDS
            elif _needed(data, position):
                return position
            else:
                step = unusual_record(data, position, self.index, self._base_timestamp, self._keys_required)
                position, headers = yield from step
                self.index += 1
                self._work -= UNUSUAL_WORK + headers % HEADERS_PER_STEP


def _needed(data: bytes | bytearray, position: int) -> int:
    """Bytes of the record at `position` if it is incomplete, as far as its length is known; otherwise 0."""
    left = len(data) - position
    if left < VARINT_BYTES and all(byte > 0x7F for byte in data[position:]):
        return left + 1
    try:
        length, at = read_varint(data, position, len(data))
    except Malformed:
        return 0
    return at + length - position if at + length > len(data) else 0
