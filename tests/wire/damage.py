"""Kinds of damage to a message, by name. A kind for which a message has no place returns None.

Blind kinds change any bytes. The others know the places of fields (places.py) and leave everything else intact, so that
the message gets as far as it can: a number at its edge reaches the handler, a count in the billions the array's reader.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from quorumlog.records.format.batch import BATCH_OVERHEAD, CRC_FIELD, CRC_POSITION, CRC_START
from quorumlog.records.format.crc import crc32c
from quorumlog.wire.format.frame_writer import write_uvarint
from tests.wire.places import Body, Kind, Place

Damage = Callable[[random.Random, Body], bytes | None]

INTERESTING = (
    b"\0",
    b"\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff",
    b"\x01",
    b"\x02",
)
HUGE = (2**31 - 1, 2**31 - 2, 2_000_000_000, 1_000_000, 70_000)
MAX_UVARINT = 2**32 - 1
ENDLESS = b"\x80" * 6
SMALL = (0, 1, 2, 3, 4, 5, -1, -2, -3, -4)
EDGES = {width: (*SMALL, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1))) for width in (1, 2, 4, 8)}
LETTERS = {1: "b", 2: "h", 4: "i", 8: "q"}


def uvarint(value: int) -> bytes:
    out = bytearray()
    write_uvarint(out, value)
    return bytes(out)


# --- blind


def flipped_bit(rng: random.Random, body: Body) -> bytes | None:
    if not body.data:
        return None
    data = bytearray(body.data)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def truncated(rng: random.Random, body: Body) -> bytes | None:
    return body.data[: rng.randrange(len(body.data))] if body.data else None


def noise(rng: random.Random, _body: Body) -> bytes:
    return rng.randbytes(rng.randrange(60))


def changed_bytes(rng: random.Random, body: Body) -> bytes:
    """Up to five changes: bytes overwritten, removed, doubled, or inserted."""
    data = bytearray(body.data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        change_bytes(data, rng)
    return bytes(data)


def change_bytes(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    match rng.randrange(5):
        case 0:
            data[at : at + 1] = rng.choice(INTERESTING)
        case 1:
            del data[at : at + rng.randrange(8)]
        case 2:
            data[at:at] = data[at : at + rng.randrange(64)] * rng.randrange(1, 9)
        case 3:
            data[at : at + 4] = rng.choice(INTERESTING)
        case _:
            data[at:at] = rng.randbytes(rng.randrange(16))


# --- aimed


def huge_count(rng: random.Random, body: Body) -> bytes | None:
    return _with_number(rng, body, body.of(Kind.COUNT), rng.choice(HUGE))


def past_the_end(rng: random.Random, body: Body) -> bytes | None:
    """A length of a string or of bytes that is larger than what is there, by little or by much."""
    lengths = body.of(Kind.LENGTH)
    return _with_number(rng, body, lengths, rng.choice((len(body.data) + 1, len(body.data) + 7, *HUGE)))


def null(rng: random.Random, body: Body) -> bytes | None:
    return _with_number(rng, body, body.of(Kind.COUNT, Kind.LENGTH), rng.choice((-1, -1, -2)))


def edge_number(rng: random.Random, body: Body) -> bytes | None:
    """One to three numbers at an edge of their range; in a uuid or an array with any width, at any place."""
    places = body.of(Kind.NUMBER)
    if not places:
        return None
    data = bytearray(body.data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.choice(places)
        width = place.size if place.size in EDGES else rng.choice([width for width in EDGES if width <= place.size])
        at = place.start + rng.randrange(place.size - width + 1)
        struct.pack_into(f">{LETTERS[width]}", data, at, rng.choice(EDGES[width]))
    return bytes(data)


def wrong_tags(rng: random.Random, body: Body) -> bytes | None:
    """Tags where there were none: unknown tags, known tags of a wrong size, a tag twice, a count that is too large."""
    empty = [place for place in body.of(Kind.VARINT) if body.data[place.start] == 0]
    if not empty:
        return None
    tag, size = rng.choice((0, 1, 2, 3, 1000, MAX_UVARINT)), rng.randrange(9)
    one = uvarint(tag) + uvarint(size) + rng.randbytes(size)
    tags = rng.choice(
        (
            b"\1" + one,
            b"\2" + one + one,
            b"\3" + one,
            uvarint(MAX_UVARINT) + one,
            b"\1" + uvarint(tag) + uvarint(rng.choice((size + 1, 1000, MAX_UVARINT))) + bytes(size),
            b"\1" + uvarint(tag) + ENDLESS,
            ENDLESS,
        )
    )
    return body.with_bytes(rng.choice(empty), tags)


def sealed_records(rng: random.Random, body: Body) -> bytes | None:
    """Records with damage inside and a right checksum, so that other checks have to find the damage."""
    batches = [place for place in body.of(Kind.CONTENT) if place.size >= BATCH_OVERHEAD and _is_sealed(body, place)]
    if not batches:
        return None
    place = rng.choice(batches)
    data = bytearray(body.data[place.start : place.start + place.size])
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(CRC_START, len(data))
        piece = rng.choice(INTERESTING)[: len(data) - at]
        data[at : at + len(piece)] = piece
    if rng.random() < 0.2:
        data = data[: rng.randrange(CRC_START, len(data) + 1)]
    CRC_FIELD.pack_into(data, CRC_POSITION, crc32c(bytes(data[CRC_START:])))
    return body.with_bytes(place, bytes(data)) if len(data) == place.size else _shorter(body, place, bytes(data))


def _shorter(body: Body, place: Place, data: bytes) -> bytes:
    """The bytes after a length that is right for them."""
    (length,) = [one for one in body.of(Kind.LENGTH) if one.start + one.size == place.start]
    length_bytes = uvarint(len(data) + 1) if length.compact else struct.pack(f">{LETTERS[length.size]}", len(data))
    return body.data[: length.start] + length_bytes + data + body.data[place.start + place.size :]


def _is_sealed(body: Body, place: Place) -> bool:
    data = body.data[place.start : place.start + place.size]
    return bool(CRC_FIELD.unpack_from(data, CRC_POSITION)[0] == crc32c(data[CRC_START:]))


def _with_number(rng: random.Random, body: Body, places: list[Place], number: int) -> bytes | None:
    """number: the length; -1 is null."""
    if not places:
        return None
    place = rng.choice(places)
    if place.compact:
        return body.with_bytes(place, uvarint(max(0, number + 1)))
    limit = 2 ** (8 * place.size - 1)
    return body.with_bytes(place, struct.pack(f">{LETTERS[place.size]}", min(number, limit - 1)))


OF_BODIES: dict[str, Damage] = {
    "flipped bit": flipped_bit,
    "truncated": truncated,
    "noise": noise,
    "changed bytes": changed_bytes,
    "count in the billions": huge_count,
    "length past the end": past_the_end,
    "null": null,
    "number at an edge": edge_number,
    "wrong tags": wrong_tags,
    "sealed records": sealed_records,
}
