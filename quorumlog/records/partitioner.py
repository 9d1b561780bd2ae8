"""Maps a key to its partition: Kafka's default partitioner, so that every client agrees.

murmur2 is Austin Appleby's MurmurHash 2 in its 32-bit form, with the seed that Kafka chose. The producer itself chooses
the partition of a record without a key.
"""

from __future__ import annotations

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash as Kafka's clients print it: a signed int32."""
    length = len(data)
    hashed = (_SEED ^ length) & _MASK
    whole = length & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _MASK
        hashed = (hashed * _MULTIPLIER & _MASK) ^ word
    if length > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed >> 31 else hashed


def partition_for_key(key: bytes, partitions: int) -> int:
    """Partition of `key`, from 0 to partitions - 1."""
    assert partitions >= 1
    return (murmur2(key) & 0x7FFFFFFF) % partitions
