"""Splits Arrow columns into batches: chooses the rows of each partition and encodes them.

Only `send_arrow` imports this module, because it imports pyarrow and numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorumlog.client.errors import ConfigError
from quorumlog.client.record_parts import checked_timestamp
from quorumlog.records import Codec, UnsealedBatch
from quorumlog.records.columnar import NO_KEY, lay_out, partition_keys

Rows = Any  # a slice with both ends, or a numpy array of row numbers
MIN_SHARES = 16  # of one table without keys, unless there are fewer partitions or rows
ROW_BYTES = 8  # most overhead of a row below 16 KiB, without headers and timestamps
COLUMNS = ("key", "value", "headers", "timestamp", "partition")


@dataclass(frozen=True, slots=True)
class ArrowColumns:
    """Columns of equal length, one chunk each. keys, headers, partitions: None if the table has no such column."""

    keys: Any
    values: Any
    timestamps_ms: Any
    headers: Any
    partitions: Any

    @classmethod
    def of(cls, table: Any, *, default_timestamp_ms: int) -> ArrowColumns:
        """Raises ConfigError for anything but a table with the known columns and types; RequestFailed for a timestamp
        that no record may have."""
        if not isinstance(table, pa.Table | pa.RecordBatch):
            raise ConfigError(f"send_arrow takes a pyarrow Table or RecordBatch, not {type(table).__name__}")
        unknown = [name for name in table.schema.names if name not in COLUMNS]
        if unknown or "value" not in table.schema.names:
            raise ConfigError(f"send_arrow takes the columns {', '.join(COLUMNS)} ('value' at least); got {unknown}")
        return cls(
            keys=_binary(table, "key"),
            values=_binary(table, "value"),
            timestamps_ms=_timestamps(table, default_timestamp_ms),
            headers=_column(table, "headers"),
            partitions=_column(table, "partition"),
        )

    def encode(self, rows: Rows, max_batch_bytes: int, compression: str) -> Iterator[tuple[UnsealedBatch, Any]]:
        """Yields batches of these rows, each with the table's row numbers that it holds."""
        batches = lay_out(
            _rows_of(self.keys, rows),
            _rows_of(self.values, rows),
            self.timestamps_ms[rows],
            _rows_of(self.headers, rows),
            max_batch_bytes=max_batch_bytes,
            codec=Codec[compression.upper()],
        )
        places = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        done = 0
        for batch in batches:
            yield batch, places[done : done + batch.count]
            done += batch.count
        assert done == len(places), "the codec left rows out"


def _rows_of(column: Any, rows: Rows) -> Any:
    """A view for a slice, a copy for row numbers."""
    if column is None:
        return None
    return column.slice(rows.start, rows.stop - rows.start) if isinstance(rows, slice) else column.take(rows)


def split(
    columns: ArrowColumns, partitions: int, fixed: int | None, first: int, batch_bytes: int, keyless: int | None = None
) -> Iterator[tuple[int, Rows]]:
    """Yields (partition, rows in order). A partition may come more than once; its later rows follow its earlier ones.

    fixed: the partition that the caller named for all rows. first: the partition of the first rows without a key.
    keyless: the partition of all rows without a key; None: they go to all of them by turns.
    batch_bytes: what a partition should get at once. 1,000 equal ranges would make tiny batches; ranges slightly larger
    than a batch would leave a small rest each (6 partitions, 1-KiB rows: 93 MB/s so, 106 MB/s in whole batches).
    """
    rows = len(columns.values)
    if fixed is not None or (partitions == 1 and columns.partitions is None):
        yield (fixed or 0), slice(0, rows)
    elif columns.partitions is None and columns.keys is None and keyless is not None:
        yield keyless, slice(0, rows)
    elif columns.partitions is None and columns.keys is None:
        rows_of_batch = max(1, batch_bytes * rows // max(1, columns.values.nbytes + ROW_BYTES * rows))
        shares = max(min(partitions, rows, MIN_SHARES), -(-rows // rows_of_batch))
        yield from _shares(rows, shares, partitions, first)
    else:
        yield from _groups(_targets(columns, partitions, first, rows, keyless))


def _shares(rows: int, shares: int, partitions: int, first: int) -> Iterator[tuple[int, slice]]:
    """Equal, non-empty ranges of rows, for one partition after the other, round robin from `first`."""
    assert shares <= rows
    for share in range(shares):
        start, stop = (-(-rows * number // shares) for number in (share, share + 1))
        yield (share + first) % partitions, slice(start, stop)


def _groups(targets: Any) -> Iterator[tuple[int, Rows]]:
    """Yields each target partition with its row numbers; a slice if there is only one, so that no row is copied."""
    if len(targets) and (targets == targets[0]).all():
        yield int(targets[0]), slice(0, len(targets))
        return
    order = np.argsort(targets, kind="stable")
    found, starts = np.unique(targets[order], return_index=True)
    for i, target in enumerate(found):
        end = starts[i + 1] if i + 1 < len(starts) else len(targets)
        yield int(target), order[starts[i] : end]


def _targets(columns: ArrowColumns, partitions: int, first: int, rows: int, keyless: int | None) -> Any:
    """The partition of each row: the one that it names, else that of its key, else by turns or `keyless`."""
    named = columns.partitions
    if named is not None and not named.null_count:
        return named.to_numpy(zero_copy_only=False).astype(np.int64)
    if columns.keys is None:
        hashed = np.full(rows, NO_KEY, np.int64)
    else:
        hashed = partition_keys(columns.keys, partitions).astype(np.int64)
    if keyless is None:
        without_key = (np.arange(rows, dtype=np.int64) * partitions // max(rows, 1) + first) % partitions
    else:
        without_key = np.full(rows, keyless, np.int64)
    chosen = np.where(hashed < 0, without_key, hashed)
    if named is None:
        return chosen
    given = pc.fill_null(named, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.where(named.is_null().to_numpy(zero_copy_only=False), chosen, given)


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
        column = column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())  # what is finer than a ms is cut off
    filled = pc.fill_null(column, default_ms).to_numpy(zero_copy_only=False).astype(np.int64)
    if len(filled):
        checked_timestamp(filled.min())
        checked_timestamp(filled.max())
    return filled
