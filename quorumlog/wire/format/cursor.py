"""Reading Kafka's primitives from one frame. Any bytes give a value or raise Malformed, nothing else.

A count alone never causes an allocation: it is first checked against the bytes that are left, and the elements of a
message together against MAX_ELEMENTS, since an element of one byte becomes an object of a hundred bytes.
Source: the protocol guide's "Protocol primitive types"; KIP-482 for compact forms and tags.
"""

from __future__ import annotations

import struct


class Malformed(Exception):
    """The peer's bytes violate the protocol; its connection cannot be used any more."""


class Foreign(Malformed):
    """The bytes are of another protocol: whoever has sent them is at the wrong port, or speaks TLS where there is none,
    or none where there is. is_tls: it has begun with a TLS hello."""

    is_tls = False


class Unsupported(Exception):
    """A request of an API or version that this listener does not serve."""


MAX_ELEMENTS = 200_000  # of all arrays of one message; a fetch of 100,000 partitions still fits
UVARINT_MAX_BYTES = 5

_I32 = struct.Struct(">i")


class Cursor:
    """A position in `data`, which is one frame. A view that it returns keeps the whole frame alive."""

    __slots__ = ("data", "elements_left", "end", "position")

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.position = 0
        self.end = len(data)
        self.elements_left = MAX_ELEMENTS

    @property
    def left(self) -> int:
        return self.end - self.position

    def skip(self, size: int) -> int:
        """Advance by `size` bytes; returns the position before them. Raises Malformed."""
        start = self.position
        if size < 0 or size > self.end - start:
            raise Malformed(f"{size} bytes wanted at byte {start}, but {self.end - start} are left")
        self.position = start + size
        return start

    def view(self, size: int) -> memoryview:
        start = self.skip(size)
        return self.data[start : start + size]

    def i32(self) -> int:
        value: int = _I32.unpack_from(self.data, self.skip(4))[0]
        return value

    def uvarint(self) -> int:
        """An unsigned varint of at most 32 bits. Raises Malformed."""
        data, start = self.data, self.position
        value = shift = 0
        for position in range(start, min(start + UVARINT_MAX_BYTES, self.end)):
            byte = data[position]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.position = position + 1
                if value > 0xFFFF_FFFF:
                    break
                return value
            shift += 7
        raise Malformed(f"no unsigned varint of 32 bits at byte {start}")

    def count(self, size: int, element_bytes: int) -> int:
        """Check a count of elements that take at least `element_bytes` each; returns it. Raises Malformed."""
        if size < 0 or size * element_bytes > self.left:
            raise Malformed(f"{size} elements at byte {self.position}, but {self.left} bytes are left")
        self.elements_left -= size
        if self.elements_left < 0:
            raise Malformed(f"more than {MAX_ELEMENTS} elements in one message")
        return size

    def text(self, size: int) -> str:
        start = self.position
        try:
            return str(self.view(size), "utf-8")
        except UnicodeDecodeError as error:
            raise Malformed(f"text at byte {start} is not UTF-8") from error

    def skip_tags(self) -> None:
        for _ in range(self.uvarint()):
            self.uvarint()
            self.skip(self.uvarint())
