"""Fields of flexible and of older versions: their lengths are varints, or int16 and int32."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import Struct
from typing import TypeVar

from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.flexible import INT16, INT32, Reader, Writer
from quorumlog.records.format.varint import write_uvarint

Item = TypeVar("Item")


class FieldReader(Reader):
    """Every method raises CorruptRecords with the position in the bytes."""

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        super().__init__(data)
        self.flexible = flexible

    def text(self) -> str:
        return self._decoded(self._present(INT16))

    def nullable_text(self) -> str | None:
        length = self._any_length(INT16)
        return None if length < 0 else self._decoded(length)

    def blob(self) -> bytes:
        return self._take(self._present(INT32))

    def nullable_blob(self) -> bytes | None:
        length = self._any_length(INT32)
        return None if length < 0 else self._take(length)

    def item_count(self) -> int:
        """Of items that follow: each takes at least one byte."""
        return self._checked_count(self._present(INT32))

    def items(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        return self._items(self._present(INT32), read)

    def nullable_items(self, read: Callable[[], Item]) -> tuple[Item, ...] | None:
        count = self._any_length(INT32)
        return None if count < 0 else self._items(count, read)

    def tags(self) -> Iterator[tuple[int, FieldReader]]:
        """Each tagged field: its tag, and a reader of its bytes."""
        for _ in range(self._length()):
            tag = self._length()
            yield tag, FieldReader(self._take(self._length()), flexible=True)

    def end(self) -> None:
        """All bytes have been read."""
        if self.left:
            raise CorruptRecords(self._position, f"{self.left} bytes follow the last field")

    def _any_length(self, old_form: Struct) -> int:
        """Below 0 for null."""
        return self._length() - 1 if self.flexible else self.number(old_form)

    def _present(self, old_form: Struct) -> int:
        length = self._any_length(old_form)
        if length < 0:
            raise CorruptRecords(self._position, "null in a field that cannot be null")
        return length


class FieldWriter(Writer):
    def __init__(self, *, flexible: bool) -> None:
        super().__init__()
        self.flexible = flexible

    def text(self, value: str) -> None:
        self.nullable_text(value)

    def nullable_text(self, value: str | None) -> None:
        data = None if value is None else value.encode()
        self._any_length(INT16, data)
        self._out += data or b""

    def blob(self, value: bytes) -> None:
        self.nullable_blob(value)

    def nullable_blob(self, value: bytes | None) -> None:
        self._any_length(INT32, value)
        self._out += value or b""

    def item_count(self, values: Sequence[Item] | None) -> None:
        """Of items that follow. None: null."""
        self._any_length(INT32, values)

    def items(self, values: Sequence[Item] | None, write: Callable[[Item], None]) -> None:
        self.item_count(values)
        for value in values or ():
            write(value)

    def tags(self, values: Mapping[int, bytes]) -> None:
        """By ascending tag."""
        write_uvarint(self._out, len(values))
        for tag, data in sorted(values.items()):
            write_uvarint(self._out, tag)
            write_uvarint(self._out, len(data))
            self._out += data

    def _any_length(self, old_form: Struct, value: Sequence[object] | None) -> None:
        length = -1 if value is None else len(value)
        if self.flexible:
            write_uvarint(self._out, length + 1)
        else:
            self.number(old_form, length)
