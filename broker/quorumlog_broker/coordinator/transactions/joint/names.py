"""Ids of children: the ordinary hash of each gives the partition of its group."""

from __future__ import annotations

from quorumlog_broker.coordinator.placement import java_hash, kafka_abs, partition_of

PREFIX = "joint"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def child_id(group: str, slot: int, partitions: int) -> str:
    """`joint:<group>:<slot>:<salt>`. partitions: that `__transaction_state` has. The same id for the same arguments.

    What follows the group may hold anything: whose child an id is, its record says, and never its name.
    """
    wanted = partition_of(group, partitions)
    begin = f"{PREFIX}:{group}:{slot}:"
    salt = 0
    while kafka_abs(java_hash(name := begin + _digits(salt))) % partitions != wanted:
        salt += 1
    return name


def _digits(number: int) -> str:
    found = DIGITS[number % 36]
    while number := number // 36:
        found = DIGITS[number % 36] + found
    return found
