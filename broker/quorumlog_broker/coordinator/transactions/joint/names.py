"""Ids of children: the ordinary hash of each gives the partition of its group."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, product

from quorumlog_broker.coordinator.placement import java_hash, kafka_abs, partition_of

PREFIX = "joint"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def child_id(group: str, slot: int, partitions: int) -> str:
    """`joint:<group>:<slot>:<salt>`. partitions: that `__transaction_state` has. The same id for the same arguments.

    What follows the group may hold anything: whose child an id is, its record says, and never its name.
    """
    wanted = partition_of(group, partitions)
    begin = f"{PREFIX}:{group}:{slot}:"
    begun = java_hash(begin)
    for length in count(1):
        for salt in product(DIGITS, repeat=length):
            if kafka_abs(_hash_on(begun, salt)) % partitions == wanted:
                return begin + "".join(salt)
    raise AssertionError("salts of every length are there")


def _hash_on(begun: int, text: Iterable[str]) -> int:
    """`java_hash` of what has this hash and the text behind it, of one-unit characters. An id tries 50 salts."""
    for character in text:
        begun = (31 * begun + ord(character)) & 0xFFFF_FFFF
    return begun - (1 << 32) if begun >> 31 else begun
