"""Which partition of an internal topic a group or a transactional id belongs to: Kafka's `partitionFor`."""

from __future__ import annotations

from functools import lru_cache

KNOWN = 1_024  # names whose partition is remembered: each call of a group asks twice, and a hash takes 2 to 8 us


@lru_cache(KNOWN)
def partition_of(name: str, partitions: int) -> int:
    """The partition, of `partitions` that the topic has. A topic that gained partitions would lose what it holds."""
    return kafka_abs(java_hash(name)) % partitions


def java_hash(text: str) -> int:
    """`String.hashCode` of Java, an int32: it runs over UTF-16 units, not over characters."""
    data, found = text.encode("utf-16-be", "surrogatepass"), 0
    for at in range(0, len(data), 2):
        found = (31 * found + (data[at] << 8 | data[at + 1])) & 0xFFFF_FFFF
    return found - (1 << 32) if found >> 31 else found


def kafka_abs(number: int) -> int:
    """`Utils.abs`: the absolute value of an int32, and 0 for the one that has none."""
    return 0 if number == -(1 << 31) else abs(number)
