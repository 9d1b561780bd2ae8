"""The records of one batch as columns of numbers: where each begins, its offset, where its key lies. No object each.

Format: Kafka's `DefaultRecord`. Offset deltas rise and may have gaps, because a batch that was compacted has them. The
tables of a round are reused from batch to batch.
"""

from __future__ import annotations

from array import array

from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import BATCH_OVERHEAD, BatchHeader, Codec
from quorumlog.records.format.compression import BadCompression, decompress
from quorumlog.records.format.varint import VARLONG_BYTES, Malformed, read_varint

NO_KEY = -1
SHORTEST_RECORD_BYTES = 7  # a count that lies must not make room for what is not there


class RecordTable:
    """Valid until the next `read`. Row i, for i < count: the record's first byte, its offset delta, its key's first
    byte (NO_KEY without one) and end, and whether it has a value. starts has one more entry, the end of the last one.
    """

    def __init__(self) -> None:
        self.data: bytes | bytearray = b""  # the records, decompressed
        self.count = 0
        self.starts = array("q")
        self.deltas = array("q")
        self.keys = array("q")
        self.key_ends = array("q")
        self.has_value = bytearray()

    def read(self, data: bytes, header: BatchHeader) -> None:
        """data: holds the batch at header.position. Raises CorruptRecords."""
        self.data = plain_records(data, header)
        try:
            if header.count > len(self.data) // SHORTEST_RECORD_BYTES:
                raise Malformed(f"{header.count} records in {len(self.data)} bytes")
            self.count = header.count
            missing = header.count + 1 - len(self.starts)
            if missing > 0:
                self._grow(missing)
            self._fill(self.data, header.count, header.last_offset_delta)
        except Malformed as error:
            raise CorruptRecords(header.position, str(error)) from error

    def _grow(self, rows: int) -> None:
        more = bytes(8 * rows)
        for column in (self.starts, self.deltas, self.keys, self.key_ends):
            column.frombytes(more)
        self.has_value.extend(bytes(rows))

    def _fill(self, data: bytes | bytearray, count: int, last_delta: int) -> None:
        """One long loop: a call for each number would double its time. Raises Malformed."""
        starts, deltas, keys, key_ends, has_value = self.starts, self.deltas, self.keys, self.key_ends, self.has_value
        size, at, previous = len(data), 0, -1
        try:
            for row in range(count):
                starts[row] = at
                length = data[at]
                at += 1
                if length > 0x7F:
                    byte = data[at]
                    at += 1
                    length += (byte << 7) - 0x80
                    if byte > 0x7F:
                        length, at = _long(data, starts[row], size)
                if length & 1:
                    raise Malformed("a record of a negative length")
                end = at + (length >> 1)
                at += 1  # the attributes
                while data[at] > 0x7F:
                    at += 1
                at += 1  # the timestamp delta
                delta = data[at]
                at += 1
                if delta > 0x7F:
                    byte = data[at]
                    at += 1
                    delta += (byte << 7) - 0x80
                    if byte > 0x7F:
                        delta, at = _long(data, at - 2, size)
                delta >>= 1
                if not previous < delta <= last_delta:
                    raise Malformed(f"offset delta {delta} after {previous}, in a batch up to {last_delta}")
                deltas[row] = previous = delta
                key_size = data[at]
                at += 1
                if key_size > 0x7F:
                    key_size, at = _long(data, at - 1, size)
                if key_size & 1:
                    keys[row] = NO_KEY
                else:
                    keys[row] = at
                    at += key_size >> 1
                    key_ends[row] = at
                has_value[row] = not data[at] & 1
                if at >= end or end > size:
                    raise Malformed("a record is shorter than what it holds")
                at = end
        except IndexError as error:
            raise Malformed("the bytes end inside a record") from error
        if at != size:
            raise Malformed(f"{size - at} bytes after the last record")
        starts[count] = at


def plain_records(data: bytes, header: BatchHeader) -> bytes | bytearray:
    """The records of a batch, decompressed. data: holds it at header.position. Raises CorruptRecords."""
    stored = memoryview(data)[header.position + BATCH_OVERHEAD : header.end]
    if header.codec == Codec.NONE or not stored:  # an empty batch may still name a codec
        return bytes(stored)
    try:
        plain = decompress(header.codec, stored)
    except BadCompression as error:
        raise CorruptRecords(header.position, str(error)) from error
    return plain if isinstance(plain, (bytes, bytearray)) else bytes(plain)


def _long(data: bytes | bytearray, at: int, size: int) -> tuple[int, int]:
    """(zigzag form of the varint at `at`, position after it). Raises Malformed."""
    value, after = read_varint(data, at, size)
    return (value << 1) ^ (value >> 63), after


def timestamp_delta(data: bytes | bytearray, start: int, end: int) -> tuple[int, int, int, int]:
    """(attributes, timestamp delta, position of what follows it, exclusive end) of the record at `start`."""
    length, at = read_varint(data, start, end)
    delta, after = read_varint(data, at + 1, end, VARLONG_BYTES)
    return data[at], delta, after, at + length
