"""The bytes before a value that say which schema it has, and the headers that newer clients write in their place.

    0  id (4 bytes, the highest first)                 Confluent's wire format
    1  GUID (16 bytes)                                 only as the value of a header, `__key_schema_id` or
                                                       `__value_schema_id`; the payload then has nothing before it

Of Protobuf there follows the place of the message in its file: how many numbers, then the index of the message on each
level, all as zigzag varints; a single 0 stands for the file's first message.
Confluent's documentation of its serializers describes it under "Wire format".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

from quorumlog.schemas.errors import BadFrame

MAGIC_ID, MAGIC_GUID = 0, 1
MAX_ID = 2**31 - 1
MAX_LEVELS = 64  # of messages within messages
MAX_INDEX = 2**31 - 1
MAX_VARINT_BYTES = 5
_GUID_BYTES = 16
_PREFIX = Struct(">BI")
HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}

Indexes = tuple[int, ...]
FIRST_MESSAGE: Indexes = (0,)


@dataclass(frozen=True, slots=True)
class Frame:
    """schema: an id, or the 16 bytes of a GUID. rest: what follows it; of Protobuf, from the indexes on."""

    schema: int | bytes
    rest: bytes


def prefix(schema_id: int) -> bytes:
    assert 0 <= schema_id <= MAX_ID
    return _PREFIX.pack(MAGIC_ID, schema_id)


def read_frame(data: bytes, headers: Sequence[tuple[str, bytes | None]] = (), origin: str = "value") -> Frame:
    """origin: "key" or "value". A header of the origin comes before the prefix. Raises BadFrame."""
    for name, value in headers:
        if name == HEADERS[origin] and value is not None:
            named = read_id(value)
            return Frame(named.schema, named.rest + data)  # of Protobuf the header has the indexes, too
    found = read_id(data)
    if not isinstance(found.schema, int):
        raise BadFrame("the first byte is 1, not 0: only a header names a schema by its GUID")
    return found


def read_id(data: bytes) -> Frame:
    """The id or GUID that the bytes begin with. Raises BadFrame."""
    if not data:
        raise BadFrame("no bytes: a serializer for a registry writes at least 5")
    if data[0] == MAGIC_ID:
        if len(data) < _PREFIX.size:
            raise BadFrame(f"{len(data)} bytes, and the id of a schema needs {_PREFIX.size}")
        schema_id: int = _PREFIX.unpack_from(data)[1]
        if schema_id > MAX_ID:
            raise BadFrame(f"{schema_id} is no id of a schema: it is larger than {MAX_ID}")
        return Frame(schema_id, data[_PREFIX.size :])
    if data[0] == MAGIC_GUID:
        if len(data) < 1 + _GUID_BYTES:
            raise BadFrame(f"{len(data)} bytes, and the GUID of a schema needs {1 + _GUID_BYTES}")
        return Frame(data[1 : 1 + _GUID_BYTES], data[1 + _GUID_BYTES :])
    raise BadFrame(f"the first byte is {data[0]}, not 0: no serializer for a registry has written it")


def write_indexes(indexes: Indexes) -> bytes:
    """indexes: of the message on each level, from the file's own messages on."""
    assert 0 < len(indexes) <= MAX_LEVELS
    if indexes == FIRST_MESSAGE:
        return b"\0"
    return b"".join(map(_varint, (len(indexes), *indexes)))


def read_indexes(data: bytes) -> tuple[Indexes, bytes]:
    """And the bytes of the message. Raises BadFrame."""
    count, at = _read_varint(data, 0)
    if count == 0:
        return FIRST_MESSAGE, data[at:]
    if not 0 < count <= MAX_LEVELS:
        raise BadFrame(f"a message in {count} levels: there are 1 to {MAX_LEVELS}")
    found: list[int] = []
    for _ in range(count):
        index, at = _read_varint(data, at)
        if not 0 <= index <= MAX_INDEX:
            raise BadFrame(f"{index} is no index of a message")
        found.append(index)
    return tuple(found), data[at:]


def _varint(value: int) -> bytes:
    left, out = value << 1, bytearray()  # zigzag of what is never negative
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for number in range(MAX_VARINT_BYTES):
        if at + number >= len(data):
            raise BadFrame("the bytes end within the indexes of the message")
        byte = data[at + number]
        value |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + number + 1
    raise BadFrame(f"an index of a message has more than {MAX_VARINT_BYTES} bytes")
