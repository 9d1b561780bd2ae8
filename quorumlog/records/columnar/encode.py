"""Arrow columns to record batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records.columnar.arrow import BytesArray, as_column, as_headers, as_numbers
from quorumlog.records.columnar.form import encoder
from quorumlog.records.format.batch import BATCH_OVERHEAD, Codec
from quorumlog.records.rowwise.plain import attributes_of, check_timestamps
from quorumlog.records.rowwise.unsealed import UnsealedBatch, compressed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from quorumlog.records.columnar.arrow import Column, Lists, Numbers

_Columns = tuple["Column", "Column", "Numbers", "Lists", "Column", "Column"]  # the first arguments of both kernels

DEFAULT_MAX_BATCH_BYTES = 1024 * 1024


def lay_out(
    keys: BytesArray,
    values: BytesArray,
    timestamps_ms: Any,
    headers: Any = None,
    *,
    max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES,
    codec: Codec = Codec.NONE,
    transactional: bool = False,
) -> Iterator[UnsealedBatch]:
    """The rows, in order, as batches without a header yet. Each batch is made when the iterator reaches it.

    keys, values: Arrow binary or string arrays; None for all null. headers: list<struct<name, value>> or None.
    timestamps_ms: Arrow int64 or timestamp array, numpy array, or one int for all rows.
    max_batch_bytes: of a whole batch before compression; a larger record gets its own batch.
    Raises ApiError: INVALID_TIMESTAMP, INVALID_RECORD (a header without a name), MESSAGE_TOO_LARGE (2 GiB).
    """
    rows = next(len(column) for column in (keys, values, timestamps_ms) if hasattr(column, "__len__"))
    assert all(len(column) == rows for column in (keys, values, headers) if column is not None)
    timestamps = as_numbers(timestamps_ms, rows)
    assert len(timestamps) == rows
    if rows:
        check_timestamps(int(timestamps.min()), int(timestamps.max()))
    columns = (as_column(keys), as_column(values), timestamps, *as_headers(headers))
    form = encoder(rows)
    layout = _plan(form, columns, rows, max_batch_bytes)
    attributes = attributes_of(codec, transactional=transactional)
    for batch in range(layout.batches):
        first, end = layout.rows(batch)
        yield UnsealedBatch(
            compressed(codec, _filled(form, columns, layout, batch)),
            count=end - first,
            attributes=attributes,
            base_timestamp=int(timestamps[first]),
            max_timestamp=int(layout.largest_timestamps[batch]),
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The start and size of each batch."""

    batches: int
    body_bytes: NDArray[np.int64]  # per row
    starts: NDArray[np.int64]  # per batch; after the last one, the number of rows
    sizes: NDArray[np.int64]  # per batch: bytes of its records
    largest_timestamps: NDArray[np.int64]  # per batch

    def rows(self, batch: int) -> tuple[int, int]:
        """First row and exclusive end."""
        return int(self.starts[batch]), int(self.starts[batch + 1])


def _plan(form: Any, columns: _Columns, rows: int, max_batch_bytes: int) -> _Layout:
    body_bytes, starts, sizes, largest = (np.empty(rows + 1, np.int64) for _ in range(4))
    batches = form.plan(*columns, max_batch_bytes - BATCH_OVERHEAD, body_bytes, starts, sizes, largest)
    if batches < 0:
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, "a record of more than 2 GiB")
    starts[batches] = rows
    return _Layout(batches, body_bytes, starts, sizes, largest)


def _filled(form: Any, columns: _Columns, layout: _Layout, batch: int) -> memoryview:
    """Space for the header, followed by the batch's records."""
    size = int(layout.sizes[batch])
    buffer = np.empty(BATCH_OVERHEAD + size, np.uint8)
    first, end = layout.rows(batch)
    written = form.fill(*columns, layout.body_bytes, first, end, buffer[BATCH_OVERHEAD:])
    assert written == size, f"planned {size} bytes, wrote {written}"
    return memoryview(buffer.data)
