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

from quorumlog.client.batches.record_parts import checked_timestamp
from quorumlog.client.errors import ConfigError, RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.records import Codec, UnsealedBatch
from quorumlog.records.columnar import NO_KEY, lay_out, partition_keys

Rows = Any  # a slice with both ends, or a numpy array of row numbers
MIN_SHARES = 16  # of one table without keys, unless there are fewer partitions or rows
ROW_BYTES = 8  # most overhead of a row below 16 KiB, without headers and timestamps
_BYTES = (
    pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary,
    pa.types.is_string_view, pa.types.is_binary_view, pa.types.is_null,
)  # fmt: skip
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
        that no record may have, or a header without a name."""
        if not isinstance(table, pa.Table | pa.RecordBatch):
            raise ConfigError(f"send_arrow takes a pyarrow Table or RecordBatch, not {type(table).__name__}")
        unknown = [name for name in table.schema.names if name not in COLUMNS]
        if unknown or "value" not in table.schema.names:
            raise ConfigError(f"send_arrow takes the columns {', '.join(COLUMNS)} ('value' at least); got {unknown}")
        twice = next((name for name in COLUMNS if table.schema.names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"column {twice!r} is there twice: drop one of them")
        values = _binary(table, "value")
        return cls(
            keys=_binary(table, "key"),
            values=pa.nulls(table.num_rows, pa.binary()) if values is None else values,
            timestamps_ms=_timestamps(table, default_timestamp_ms),
            headers=_headers(table),
            partitions=_partitions(table),
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
    """None if there is none, or one of nulls only, which `pa.table` makes without a type."""
    if name not in table.schema.names:
        return None
    column = table.column(name)
    if pa.types.is_null(column.type):
        return None
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
    elif not pa.types.is_integer(column.type):
        raise ConfigError(f"column 'timestamp' must be int64 ms or a timestamp, not {column.type}")
    filled = pc.fill_null(column, default_ms).to_numpy(zero_copy_only=False).astype(np.int64)
    if len(filled):
        checked_timestamp(filled.min())
        checked_timestamp(filled.max())
    return filled


def _partitions(table: Any) -> Any:
    """Others, as 1.5, would be cut to a number that nobody has named."""
    column = _column(table, "partition")
    if column is not None and not pa.types.is_integer(column.type):
        raise ConfigError(f"column 'partition' must be an integer, not {column.type}")
    return column


def _headers(table: Any) -> Any:
    column = _column(table, "headers")
    if column is None or (
        pa.types.is_list(column.type) and pa.types.is_null(column.type.value_type) and _is_empty(column)
    ):
        return None
    if not _is_pairs(column.type):
        raise ConfigError(
            "column 'headers' must be a list of structs of name and value, each binary or string, or a map of them, "
            f"not {column.type}"
        )
    if not _has_nameless(column.values):  # of the slice's whole parent, and under null lists, too
        return column
    if _has_nameless(column.flatten()):  # of the rows
        raise RequestFailed(ErrorCode.INVALID_RECORD, "a header without a name; a name may be empty, a value null")
    return column.take(np.arange(len(column)))  # without what no row has: the encoder looks at all


def _has_nameless(pairs: Any) -> bool:
    return bool(pairs.null_count or pairs.field(0).null_count)


def _is_empty(lists: Any) -> bool:
    return len(lists.flatten()) == 0


def _is_pairs(kind: Any) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind)):
        return False
    fields = [kind.key_type, kind.item_type] if pa.types.is_map(kind) else _fields(kind.value_type)
    return len(fields) == 2 and all(any(is_kind(field) for is_kind in _BYTES) for field in fields)


def _fields(kind: Any) -> list[Any]:
    return [field.type for field in kind] if pa.types.is_struct(kind) else []
