"""Kafka's default partitioner over a whole column, compiled: the twin of `quorumlog.records.partitioner`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorumlog.records.columnar.arrow import NO_KEY
from quorumlog.records.columnar.compiled import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quorumlog.records.columnar.arrow import Column

_SEED = 0x9747B28C
_MULTIPLIER = np.uint32(0x5BD1E995)


@kernel
def partition_rows(keys: Column, partitions: int, out: NDArray[np.int32]) -> None:
    data = keys.data
    for row in range(len(out)):
        bit = keys.first_bit + row
        if len(keys.validity) > 0 and (keys.validity[bit >> 3] >> (bit & 7)) & 1 == 0:
            out[row] = NO_KEY
            continue
        start, end = keys.offsets[row], keys.offsets[row + 1]
        hashed = np.uint32(np.uint32(_SEED) ^ np.uint32(end - start))
        while end - start >= 4:
            word = np.uint32(data[start]) | np.uint32(data[start + 1]) << np.uint32(8)
            word |= np.uint32(data[start + 2]) << np.uint32(16) | np.uint32(data[start + 3]) << np.uint32(24)
            word = np.uint32(np.uint32(word) * _MULTIPLIER)
            word = np.uint32((word ^ word >> np.uint32(24)) * _MULTIPLIER)
            hashed = np.uint32(np.uint32(hashed * _MULTIPLIER) ^ word)
            start += 4
        if end > start:
            for index in range(end - start):
                hashed = np.uint32(hashed ^ np.uint32(data[start + index]) << np.uint32(8 * index))
            hashed = np.uint32(hashed * _MULTIPLIER)
        hashed = np.uint32((hashed ^ hashed >> np.uint32(13)) * _MULTIPLIER)
        hashed = np.uint32(hashed ^ hashed >> np.uint32(15))
        out[row] = np.int64(hashed & np.uint32(0x7FFFFFFF)) % partitions
