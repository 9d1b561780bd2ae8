"""Kafka's default partitioner over a whole column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorumlog.records.columnar.arrow import NO_KEY, BytesArray, as_column
from quorumlog.records.columnar.form import partitioner

if TYPE_CHECKING:
    from numpy.typing import NDArray


def partition_keys(keys: BytesArray, partitions: int) -> NDArray[np.int32]:
    """Partition of every key, from 0 to partitions - 1; NO_KEY where the key is null."""
    assert partitions >= 1
    column = as_column(keys)
    if len(column.offsets) == 0:
        return np.full(0 if keys is None else len(keys), NO_KEY, np.int32)
    out = np.empty(len(column.offsets) - 1, np.int32)
    partitioner(len(out)).partition_rows(column, partitions, out)
    return out
