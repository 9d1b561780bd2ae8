"""Damage to the bytes of a file or a message, of any format, determined by a random generator."""

from __future__ import annotations

import random
from collections.abc import Sequence
from zlib import crc32

from quorumlog.records.format.batch import BATCH_OVERHEAD, CRC_FIELD, CRC_POSITION, CRC_START
from quorumlog.records.format.crc import crc32c

MOST_DAMAGES = 4  # in one input
EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1)
WORDS = (b"-1", b"99999999999999999999", b" ", b"\n", b"1e999", b"NaN", b"Infinity", b"null", b"{", b"[" * 40, b'"',
         "é".encode(), b"\xff\xfe", b"\\u12", b"=", b"\x00")  # fmt: skip
LARGE_PART = 0.01  # of the inputs: many copies of a seed
LARGE_BYTES = 48 * 1024
NOISE_PART = 0.05  # of the inputs: any bytes
DEEP_PART = 0.002  # of the inputs: brackets in brackets, deeper than any stack
PARTS_PART = 0.004  # of the inputs: a seed with thousands of parts in it, between its own separators
PARTS_BYTES = 8_000


def damaged(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One input. It may be a seed as it is."""
    chance = rng.random()
    if chance < DEEP_PART:
        return rng.choice((b"[", b'{"a":')) * rng.choice((100, 2_000, 20_000))
    if chance < DEEP_PART + PARTS_PART:
        return _many_parts(rng, rng.choice(seeds))
    if chance < NOISE_PART:
        return rng.randbytes(rng.randrange(200))
    data = bytearray(rng.choice(seeds))
    if chance > 1 - LARGE_PART and data:
        data *= max(1, LARGE_BYTES // len(data))
    for _ in range(rng.randrange(MOST_DAMAGES + 1)):
        _damage(rng, data, seeds)
    return bytes(data)


def _many_parts(rng: random.Random, seed: bytes) -> bytes:
    separators = [byte for byte in seed if not chr(byte).isalnum()] or [ord(",")]
    part = b"ab" + bytes([rng.choice(separators)])
    at = rng.randrange(len(seed) + 1)
    return seed[:at] + part * (PARTS_BYTES // len(part)) + seed[at:]


def _damage(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(8)
    if kind == 0 and data:
        data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
    elif kind == 1:
        width = rng.choice((1, 2, 4, 8))
        data[at : at + width] = (rng.choice(EDGES) % (1 << 8 * width)).to_bytes(width)
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        del data[at : at + rng.randrange(1, 40)]
    elif kind == 4:
        data[at:at] = data[at : at + rng.randrange(1, 60)]
    elif kind == 5:
        other = rng.choice(seeds)
        begin = rng.randrange(len(other) + 1)
        data[at:at] = other[begin : begin + rng.randrange(1, 60)]
    elif kind == 6:
        data[at:at] = rng.choice(WORDS)
    else:
        data[at:at] = rng.randbytes(rng.randrange(1, 9))


def with_batch_crcs(data: bytes) -> bytes:
    """The checksum of each batch made right, as far as lengths lead from one to the next."""
    out, position = bytearray(data), 0
    while position + BATCH_OVERHEAD <= len(out):
        end = position + 12 + int.from_bytes(out[position + 8 : position + 12], signed=True)
        if end <= position + BATCH_OVERHEAD - 1 or end > len(out):
            break
        crc = crc32c(bytes(out[position + CRC_START : end]))
        out[position + CRC_POSITION : position + CRC_START] = CRC_FIELD.pack(crc)
        position = end
    return bytes(out)


def with_entry_crc(data: bytes) -> bytes:
    """The checksum of one entry of format 0 or 1 made right."""
    end = 12 + int.from_bytes(data[8:12], signed=True)
    return data[:12] + CRC_FIELD.pack(crc32(data[16:end])) + data[16:] if 17 < end <= len(data) else data


def with_snapshot_crc(data: bytes) -> bytes:
    """The checksum of a producer snapshot made right."""
    return data[:2] + CRC_FIELD.pack(crc32c(data[6:])) + data[6:] if len(data) >= 6 else data
