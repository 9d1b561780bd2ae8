"""The values of the records: each names its producer, partition and turn, so that a read record identifies its send.

A turn counts the records of one producer in one partition, from 0. The rest of a value is filler whose length follows
from the turn, so a value that was changed on its way is noticed.
"""

from __future__ import annotations

import struct

_HEAD = struct.Struct(">IHHI")  # run, producer, partition, turn
_FILLER = bytes(range(97, 123)) * 64
_LENGTHS = 397  # prime, so that lengths do not repeat with the batches

RecordId = int  # producer << TURN_BITS | turn; the partition is that of the log
FOREIGN: RecordId = -1  # no value of this run
TURN_BITS = 32


def record_id(producer: int, turn: int) -> RecordId:
    return producer << TURN_BITS | turn


def producer_of(found: RecordId) -> int:
    return found >> TURN_BITS


def turn_of(found: RecordId) -> int:
    return found & ((1 << TURN_BITS) - 1)


def encode(run: int, producer: int, partition: int, turn: int, size: int) -> bytes:
    """size: of the filler in bytes, to which up to `_LENGTHS` are added."""
    return _HEAD.pack(run, producer, partition, turn) + _filler(turn, size)


def decode(run: int, partition: int, value: bytes | None, sizes: tuple[int, ...]) -> RecordId:
    """The id of a record read from this partition, or FOREIGN. sizes: of the filler, by producer."""
    if value is None or len(value) < _HEAD.size:
        return FOREIGN
    its_run, producer, its_partition, turn = _HEAD.unpack_from(value)
    if its_run != run or its_partition != partition or producer >= len(sizes):
        return FOREIGN
    if value[_HEAD.size :] != _filler(turn, sizes[producer]):
        return FOREIGN
    return record_id(producer, turn)


def turn_in(value: bytes) -> int:
    """The turn in a value of ours."""
    turn: int = _HEAD.unpack_from(value)[3]
    return turn


def _filler(turn: int, size: int) -> bytes:
    return _FILLER[: size + turn * 31 % _LENGTHS]
