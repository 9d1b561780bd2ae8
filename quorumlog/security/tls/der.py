"""Elements of DER (X.690): as much of it as finds a name in a certificate.

TLS has parsed a peer's certificate before anybody looks at its name, so nothing here is about validity.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

BOOLEAN, OCTET_STRING, OBJECT_IDENTIFIER, SEQUENCE, SET = 0x01, 0x04, 0x06, 0x30, 0x31
MAX_LENGTH_BYTES = 4
MAX_OID_BYTES = 64  # of an encoded object identifier; a longer one would be a number without an end


class BadDer(ValueError):
    """Bytes that are no DER, or not what was expected there."""


class Element(NamedTuple):
    """One element. whole: its bytes with tag and length. content: those behind them."""

    tag: int
    whole: bytes
    content: bytes


def read_elements(data: bytes) -> Iterator[Element]:
    """The elements that follow each other in `data`. Raises BadDer."""
    position = 0
    while position < len(data):
        start, tag = position, data[position]
        if tag & 0x1F == 0x1F:
            raise BadDer(f"a tag of several bytes at byte {position}")
        length, begin = _length(data, position + 1)
        position = begin + length
        if position > len(data):
            raise BadDer(f"{length} bytes at byte {begin}, and {len(data) - begin} are left")
        yield Element(tag, data[start:position], data[begin:position])


def _length(data: bytes, position: int) -> tuple[int, int]:
    """A length, and where its element's content begins."""
    if position >= len(data):
        raise BadDer("it ends behind a tag")
    first = data[position]
    if first < 0x80:
        return first, position + 1
    count = first & 0x7F
    digits = data[position + 1 : position + 1 + count]
    if not 1 <= count <= MAX_LENGTH_BYTES or len(digits) < count:
        raise BadDer(f"a length of {count} bytes at byte {position}")
    length = int.from_bytes(digits, "big")
    if length < 0x80 or digits[0] == 0:
        raise BadDer(f"a length that is not in its shortest form at byte {position}")
    return length, position + 1 + count


def read_one(data: bytes, tag: int) -> bytes:
    """The content of the one element that `data` is. Raises BadDer."""
    found = list(read_elements(data))
    if len(found) != 1 or found[0].tag != tag:
        raise BadDer(f"not one element with tag 0x{tag:02x}")
    return found[0].content


def read_oid(content: bytes) -> str:
    """An object identifier in dotted form. Raises BadDer."""
    if not content or content[-1] & 0x80 or len(content) > MAX_OID_BYTES:
        raise BadDer("no object identifier")
    arcs, value, begins = [], 0, True
    for byte in content:
        if begins and byte == 0x80:
            raise BadDer("an object identifier with a part that is not in its shortest form")
        value, begins = value << 7 | byte & 0x7F, not byte & 0x80
        if begins:
            arcs.append(value)
            value = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))
