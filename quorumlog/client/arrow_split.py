"""Columns on their way into batches: which rows go to which partition, and the encoding of those rows.

Only `send_arrow` imports this: pyarrow, numpy and numba come with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorumlog.client.errors import ConfigError
from quorumlog.records import Codec
from quorumlog.records.columnar import encode_columns, partition_keys

COLUMNS = ("key", "value", "headers", "timestamp", "partition")


@dataclass(frozen=True, slots=True)
class ArrowColumns:
    """Columns of equal length, each one chunk. keys, headers, partitions: None where the table has no such column."""

    keys: Any
    values: Any
    timestamps_ms: Any
    headers: Any
    partitions: Any

    @classmethod
    def of(cls, table: Any, *, default_timestamp_ms: int) -> ArrowColumns:
        """Raises ConfigError for a table that is none, or has a column with another meaning."""
        if not isinstance(table, pa.Table | pa.RecordBatch):
            raise ConfigError(f"send_arrow takes a pyarrow Table or RecordBatch, not {type(table).__name__}")
        strange = [name for name in table.schema.names if name not in COLUMNS]
        if strange or "value" not in table.schema.names:
            raise ConfigError(f"send_arrow takes the columns {', '.join(COLUMNS)} ('value' at least); got {strange}")
        return cls(
            keys=_binary(table, "key"),
            values=_binary(table, "value"),
            timestamps_ms=_timestamps(table, default_timestamp_ms),
            headers=_column(table, "headers"),
            partitions=_column(table, "partition"),
        )

    def encode(self, rows: Any, max_batch_bytes: int, compression: str) -> Iterator[tuple[bytes, int, Any]]:
        """Batches of these rows (None: all): bytes, count, and the places of their rows in the table."""
        whole = rows is None
        batches = encode_columns(
            self.keys if whole or self.keys is None else self.keys.take(rows),
            self.values if whole else self.values.take(rows),
            self.timestamps_ms if whole else self.timestamps_ms[rows],
            self.headers if whole or self.headers is None else self.headers.take(rows),
            max_batch_bytes=max_batch_bytes,
            codec=Codec[compression.upper()],
        )
        places = np.arange(len(self.values)) if whole else np.asarray(rows)
        done = 0
        for batch in batches:
            yield batch.data, batch.count, places[done : done + batch.count]
            done += batch.count
        assert done == len(places), "the codec left rows out"


def split(columns: ArrowColumns, partitions: int, fixed: int | None, turn: int) -> Iterator[tuple[int, Any]]:
    """(partition, row numbers in order | None for all) for every partition that gets rows.

    fixed: the partition that the caller named for all. turn: which call this is, so that rows without a key go round.
    """
    rows = len(columns.values)
    if fixed is not None or (partitions == 1 and columns.partitions is None):
        yield (fixed or 0), None
        return
    targets = _targets(columns, partitions, turn, rows)
    order = np.argsort(targets, kind="stable")
    found, starts = np.unique(targets[order], return_index=True)
    for i, target in enumerate(found):
        end = starts[i + 1] if i + 1 < len(starts) else rows
        yield int(target), order[starts[i] : end]


def _targets(columns: ArrowColumns, partitions: int, turn: int, rows: int) -> Any:
    if columns.partitions is not None:
        return columns.partitions.to_numpy(zero_copy_only=False).astype(np.int64)
    turns = (np.arange(rows, dtype=np.int64) * partitions // max(rows, 1) + turn) % partitions
    if columns.keys is None:
        return turns
    hashed = partition_keys(columns.keys, partitions).astype(np.int64)
    return np.where(hashed < 0, turns, hashed)


def _column(table: Any, name: str) -> Any:
    if name not in table.schema.names:
        return None
    column = table.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _binary(table: Any, name: str) -> Any:
    column = _column(table, name)
    if column is None or column.type == pa.binary():
        return column
    if (
        pa.types.is_string(column.type)
        or pa.types.is_large_string(column.type)
        or pa.types.is_large_binary(column.type)
    ):
        return column.cast(pa.binary())
    raise ConfigError(f"column {name!r} must be binary or string, not {column.type}")


def _timestamps(table: Any, default_ms: int) -> Any:
    column = _column(table, "timestamp")
    if column is None:
        return np.full(table.num_rows, default_ms, dtype=np.int64)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms")).cast(pa.int64())
    filled = pc.fill_null(column, default_ms)
    return filled.to_numpy(zero_copy_only=False).astype(np.int64)
