"""Arrow arrays as the flat numpy arrays that kernels take, and back. No value is copied, in either direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from quorumlog.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Numbers = NDArray[np.int64]

BytesArray = Any  # pa.Array or pa.ChunkedArray of binary or string type of any width, or None: all null
NO_KEY = -1  # instead of a partition: the caller's choice
MAX_BATCH_BYTES = 2**31 - 1 - 1024  # an int32 length, minus space for the header
MAX_COLUMN_BYTES = 2**31 - 1  # limit of an Arrow binary array with 32-bit offsets

_PLAIN_TYPES = frozenset({pa.binary(), pa.string(), pa.large_binary(), pa.large_string()})


class Column(NamedTuple):
    """A column of bytes. Row i is data[offsets[i] : offsets[i + 1]], unless it is null."""

    offsets: Numbers  # rows + 1; empty if every row is null
    data: Bytes
    validity: Bytes  # Arrow's bitmap, bit 0 first; empty if no row is null
    first_bit: int  # in the bitmap; an Arrow slice may start at any bit


class Lists(NamedTuple):
    """A column of lists. Row i has the entries from offsets[i] to offsets[i + 1] (exclusive), or none if it is null."""

    offsets: Numbers  # rows + 1; empty if every list is empty
    validity: Bytes
    first_bit: int


_NO_NUMBERS = np.empty(0, np.int64)
_NO_BYTES = np.empty(0, np.uint8)
for _array in (_NO_NUMBERS, _NO_BYTES):
    _array.flags.writeable = False

NO_COLUMN = Column(_NO_NUMBERS, _NO_BYTES, _NO_BYTES, 0)
NO_LISTS = Lists(_NO_NUMBERS, _NO_BYTES, 0)


def as_column(array: BytesArray) -> Column:
    """View an Arrow array (None: all rows are null) as a Column."""
    if array is None or array.type == pa.null():
        return NO_COLUMN
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if array.type not in _PLAIN_TYPES:
        array = array.cast(pa.large_binary())
    validity, offsets, data = array.buffers()
    width = np.int64 if array.type in (pa.large_binary(), pa.large_string()) else np.int32
    return Column(_offsets(offsets, array, width), _bytes(data), *_bitmap(array, validity))


def as_headers(array: Any) -> tuple[Lists, Column, Column]:
    """View a list<struct<name, value>> array (None: no headers) as lists, names and values."""
    if array is None:
        return NO_LISTS, NO_COLUMN, NO_COLUMN
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    entries = array.values  # of the whole parent: the offsets of a slice point into it
    if entries.null_count or entries.field(0).null_count:
        raise ApiError(ErrorCode.INVALID_RECORD, "a header without a name")
    validity, offsets = array.buffers()[:2]
    width = np.int64 if pa.types.is_large_list(array.type) else np.int32
    lists = Lists(_offsets(offsets, array, width), *_bitmap(array, validity))
    return lists, as_column(entries.field(0)), as_column(entries.field(1))


def as_numbers(values: Any, rows: int) -> Numbers:
    """int64 per row, from an Arrow int64 or timestamp[ms] array without nulls, a numpy array, or one int for all."""
    if isinstance(values, int):
        return _frozen(np.full(rows, values, np.int64))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        if values.null_count:
            raise ApiError(ErrorCode.INVALID_TIMESTAMP, f"{values.null_count} records without a timestamp")
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ms", values.type.tz), safe=False)
        values = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return _frozen(np.ascontiguousarray(values, dtype=np.int64))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view. Numba compiles separately for read-only and writable arrays, so kernels get one kind only."""
    view = array.view()
    view.flags.writeable = False
    return view


def readonly_bytes(buffer: Any) -> Bytes:
    """The bytes of any buffer, read-only."""
    return _frozen(np.frombuffer(buffer, np.uint8))


def _bytes(buffer: Any) -> Bytes:
    return _NO_BYTES if buffer is None or buffer.size == 0 else readonly_bytes(buffer)


def present_rows(column: Column | Lists, first: int, end: int) -> NDArray[np.bool_]:
    """Which of the rows from `first` to `end` (exclusive) are not null."""
    if not len(column.offsets):
        return np.zeros(end - first, bool)
    if not len(column.validity):
        return np.ones(end - first, bool)
    bits = np.arange(first, end) + column.first_bit
    present: NDArray[np.bool_] = (column.validity[bits >> 3] >> (bits & 7).astype(np.uint8)) & 1 == 1
    return present


def _offsets(buffer: Any, array: Any, width: type[np.int32] | type[np.int64]) -> Numbers:
    if len(array) == 0:
        return _NO_NUMBERS
    entries = np.frombuffer(buffer, width, len(array) + 1, array.offset * np.dtype(width).itemsize)
    return _frozen(entries.astype(np.int64, copy=False))


def _bitmap(array: Any, buffer: Any) -> tuple[Bytes, int]:
    return (_NO_BYTES, 0) if buffer is None or array.null_count == 0 else (_bytes(buffer), array.offset)


def from_parts(kind: Any, offsets: NDArray[np.int32], data: Bytes, valid: Bytes) -> Any:
    """An Arrow array of binary or string type.

    offsets: rows + 1 from 0. valid: one byte per row, 0 if it is null; empty if no row is null.
    """
    return pa.Array.from_buffers(kind, len(offsets) - 1, [pack_validity(valid), as_buffer(offsets), as_buffer(data)])


def as_buffer(array: Any) -> Any:
    """A numpy array as an Arrow buffer that keeps it alive."""
    return pa.py_buffer(array)


def pack_validity(valid: Bytes) -> Any:
    """Arrow's bitmap, made of one byte per row. No bytes: None, which means that no row is null."""
    return as_buffer(np.packbits(valid, bitorder="little")) if len(valid) else None
