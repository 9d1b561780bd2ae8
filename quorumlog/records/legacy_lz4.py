"""The lz4 frames of message format 0, whose header checksum Kafka computed over too many bytes (KIP-57).

A frame: magic u32, flags, block size, [content size u64], header checksum, blocks. The checksum is the second byte of
xxHash32 of what lies between the magic and itself; Kafka's old one was computed with the magic, and libraries refuse
it. Source of both formats: the LZ4 frame description and the xxHash specification.
"""

from __future__ import annotations

from quorumlog.records.compression import BadCompression

_MAGIC_BYTES = 4
_HAS_CONTENT_SIZE = 0x08  # of the flags
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_MASK = 0xFFFFFFFF


def mended_frame(frame: bytes) -> bytes:
    """The frame with the checksum that its header should have. Raises BadCompression if it is too short for one."""
    if len(frame) < _MAGIC_BYTES + 3:
        raise BadCompression("lz4: the data is truncated")
    at = _MAGIC_BYTES + 2 + (8 if frame[_MAGIC_BYTES] & _HAS_CONTENT_SIZE else 0)
    if len(frame) <= at:
        raise BadCompression("lz4: the data is truncated")
    return frame[:at] + bytes([xxh32_of_few(frame[_MAGIC_BYTES:at]) >> 8 & 0xFF]) + frame[at + 1 :]


def xxh32_of_few(data: bytes) -> int:
    """xxHash32, seed 0, of fewer than 16 bytes."""
    assert len(data) < 16
    value = (_P5 + len(data)) & _MASK
    position = 0
    while len(data) - position >= 4:
        value = (value + int.from_bytes(data[position : position + 4], "little") * _P3) & _MASK
        value = _rotated(value, 17) * _P4 & _MASK
        position += 4
    for byte in data[position:]:
        value = _rotated((value + byte * _P5) & _MASK, 11) * _P1 & _MASK
    value = (value ^ value >> 15) * _P2 & _MASK
    value = (value ^ value >> 13) * _P3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
