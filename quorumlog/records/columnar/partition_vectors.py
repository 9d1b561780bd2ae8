"""Kafka's default partitioner over a whole column, with numpy: four bytes of every key at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorumlog.records.columnar.arrow import NO_KEY, present_rows
from quorumlog.records.partitioner import partition_for_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quorumlog.records.columnar.arrow import Column, Numbers

LONG_KEY_BYTES = 256  # longer keys are hashed one by one: few keys would make each step over the column small

_SEED = np.uint32(0x9747B28C)
_MULTIPLIER = np.uint32(0x5BD1E995)


def partition_rows(keys: Column, partitions: int, out: NDArray[np.int32]) -> None:
    """Fill `out` with the partition of every key, NO_KEY where the key is null."""
    starts, lengths = keys.offsets[:-1], np.diff(keys.offsets)
    short = np.flatnonzero(lengths <= LONG_KEY_BYTES)
    out[short] = (_hashes(keys, starts[short], lengths[short]) & np.uint32(0x7FFFFFFF)) % partitions
    for row in np.flatnonzero(lengths > LONG_KEY_BYTES).tolist():
        out[row] = partition_for_key(bytes(keys.data[starts[row] : starts[row] + lengths[row]]), partitions)
    if len(keys.validity):
        out[~present_rows(keys, 0, len(out))] = NO_KEY


def _hashes(keys: Column, starts: Numbers, lengths: Numbers) -> NDArray[np.uint32]:
    """Murmur2 as Kafka computes it."""
    hashes = _SEED ^ lengths.astype(np.uint32)
    for first in range(0, LONG_KEY_BYTES, 4):
        rows = np.flatnonzero(lengths >= first + 4)
        if not len(rows):
            break
        words = _words(keys, starts[rows] + first, 4) * _MULTIPLIER
        hashes[rows] = hashes[rows] * _MULTIPLIER ^ (words ^ words >> np.uint32(24)) * _MULTIPLIER
    for left in (1, 2, 3):
        rows = np.flatnonzero(lengths & 3 == left)
        words = _words(keys, starts[rows] + (lengths[rows] & ~3), left)
        hashes[rows] = (hashes[rows] ^ words) * _MULTIPLIER
    hashes = (hashes ^ hashes >> np.uint32(13)) * _MULTIPLIER
    return hashes ^ hashes >> np.uint32(15)


def _words(keys: Column, positions: Numbers, size: int) -> NDArray[np.uint32]:
    """`size` bytes at each position as one number, the lowest byte first."""
    words = np.zeros(len(positions), np.uint32)
    for index in range(size):
        words |= keys.data[positions + index].astype(np.uint32) << np.uint32(8 * index)
    return words
