"""Fields of Kafka's flexible message versions (see the start of FORMATS), as far as control records use them."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, TypeVar

from quorumlog.ids import UUID_BYTES, Uuid
from quorumlog.records.corrupt import CorruptRecords
from quorumlog.records.varint import Malformed, read_uvarint, write_uvarint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INT16, UINT16, INT32, INT64 = Struct(">h"), Struct(">H"), Struct(">i"), Struct(">q")

Item = TypeVar("Item")


class Writer:
    """Appends one field after the other."""

    def __init__(self) -> None:
        self._out = bytearray()

    def number(self, form: Struct, value: int) -> None:
        self._out += form.pack(value)

    def uuid(self, value: Uuid) -> None:
        assert len(value) == UUID_BYTES
        self._out += value

    def text(self, value: str) -> None:
        data = value.encode()
        write_uvarint(self._out, len(data) + 1)
        self._out += data

    def array(self, items: Sequence[Item], write: Callable[[Item], None]) -> None:
        write_uvarint(self._out, len(items) + 1)
        for item in items:
            write(item)

    def no_tags(self) -> None:
        self._out.append(0)

    def done(self) -> bytes:
        return bytes(self._out)


class Reader:
    """Reads one field after the other. Every method raises CorruptRecords with the position in `data`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _take(self, length: int) -> bytes:
        left = len(self._data) - self._position
        if not 0 <= length <= left:
            raise CorruptRecords(self._position, f"a field of {length} bytes, {left} are left")
        self._position += length
        return self._data[self._position - length : self._position]

    def _length(self) -> int:
        try:
            length, self._position = read_uvarint(self._data, self._position, len(self._data))
        except Malformed as error:
            raise CorruptRecords(self._position, str(error)) from error
        return length

    def _compact_length(self) -> int:
        length = self._length() - 1
        if length < 0:
            raise CorruptRecords(self._position, "null in a field that cannot be null")
        return length

    def number(self, form: Struct) -> int:
        return int(form.unpack(self._take(form.size))[0])

    def uuid(self) -> Uuid:
        return self._take(UUID_BYTES)

    def text(self) -> str:
        start = self._position
        try:
            return self._take(self._compact_length()).decode()
        except UnicodeDecodeError as error:
            raise CorruptRecords(start, "text is not UTF-8") from error

    def array(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        length = self._compact_length()
        left = len(self._data) - self._position
        if length > left:  # each item takes at least one byte
            raise CorruptRecords(self._position, f"{length} items in {left} bytes")
        return tuple(read() for _ in range(length))

    def skip_tags(self) -> None:
        """Skips tagged fields of newer versions; the rest can be read without them."""
        for _ in range(self._length()):
            self._length()
            self._take(self._length())
