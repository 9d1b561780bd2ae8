"""Fields of Kafka's flexible message versions (KIP-482), as far as control records use them."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, TypeVar

from quorumlog.ids import UUID_BYTES, Uuid
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.varint import Malformed, read_uvarint, write_uvarint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INT8, INT16, UINT16, INT32, INT64 = Struct(">b"), Struct(">h"), Struct(">H"), Struct(">i"), Struct(">q")

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

    @property
    def left(self) -> int:
        """How many bytes have not been read."""
        return len(self._data) - self._position

    def _take(self, length: int) -> bytes:
        if not 0 <= length <= self.left:
            raise CorruptRecords(self._position, f"a field of {length} bytes, {self.left} are left")
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

    def uvarint(self) -> int:
        return self._length()

    def text(self) -> str:
        return self._decoded(self._compact_length())

    def nullable_text(self) -> str | None:
        length = self._length() - 1
        return None if length < 0 else self._decoded(length)

    def _decoded(self, length: int) -> str:
        start = self._position
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise CorruptRecords(start, "text is not UTF-8") from error

    def array(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        return self._items(self._compact_length(), read)

    def _items(self, count: int, read: Callable[[], Item]) -> tuple[Item, ...]:
        return tuple(read() for _ in range(self._checked_count(count)))

    def _checked_count(self, count: int) -> int:
        if count > self.left:  # each item takes at least one byte
            raise CorruptRecords(self._position, f"{count} items in {self.left} bytes")
        return count

    def skip_tags(self) -> None:
        """Skips tagged fields of newer versions; the rest can be read without them."""
        for _ in range(self._length()):
            self._length()
            self._take(self._length())
