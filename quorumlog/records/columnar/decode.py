"""Record batches to Arrow columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records.columnar.arrow import MAX_COLUMN_BYTES, as_buffer, from_parts, readonly_bytes
from quorumlog.records.columnar.form import decoder
from quorumlog.records.columnar.found import (
    BAD_OFFSET,
    BAD_RECORD,
    BAD_TIMESTAMP,
    GOOD,
    LEFT_OVER,
    NOT_APPEND_TIME,
    Batches,
    Rows,
    Totals,
)
from quorumlog.records.format.batch import BATCH_OVERHEAD, MAGIC, BatchHeader, Codec, verify_crc
from quorumlog.records.format.batch import headers as parse_headers
from quorumlog.records.format.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.legacy import in_format_2
from quorumlog.records.rowwise.plain import records_payload

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from quorumlog.ids import Offset
    from quorumlog.records.columnar.arrow import Bytes
    from quorumlog.records.format.buffers import Buffer

HEADER_TYPE: Any = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
HEADERS_TYPE: Any = pa.list_(pa.field("element", HEADER_TYPE, nullable=False))
_FIELDS: list[Any] = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("timestamp", pa.int64(), nullable=False),  # ms since 1970; -1: none
]
SCHEMA = pa.schema(_FIELDS)
SCHEMA_WITH_HEADERS = SCHEMA.append(pa.field("headers", HEADERS_TYPE, nullable=False))
SIZE = "size"  # bytes of the whole record, its length included, before compression
_EVERY = SCHEMA_WITH_HEADERS.append(pa.field(SIZE, pa.int32(), nullable=False))

_FAULTS = {
    BAD_RECORD: "the bytes of a record are malformed",
    BAD_OFFSET: "offsets that do not rise within the batch's",
    BAD_TIMESTAMP: "a timestamp beyond 64 bits",
    LEFT_OVER: "bytes after the last record",
}


def decode_columns(
    buf: Buffer,
    *,
    from_offset: Offset,
    to_offset: Offset,
    columns: Collection[str] = tuple(SCHEMA.names),
    batches: Sequence[BatchHeader] | None = None,
    check_crc: bool = True,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> pa.RecordBatch:
    """The records from from_offset to to_offset (exclusive) of the batches in `buf`.

    columns: of SCHEMA_WITH_HEADERS and SIZE, returned in their order there; no byte of another one is copied.
    Control batches and batches completely outside the range are skipped without a check.
    batches: which of buf's batches to read (a reader of committed records leaves out aborted ones); None for all, and
    then `buf` must hold whole batches. max_decompressed_bytes: of each batch. Raises CorruptRecords, and ApiError
    RECORD_LIST_TOO_LARGE if a column would exceed 2 GiB: pass fewer batches.
    """
    found = parse_headers(buf) if batches is None else batches
    if any(header.magic < MAGIC for header in found):
        buf = in_format_2(buf, found, check_crc=check_crc, max_bytes=max_decompressed_bytes)
        found = parse_headers(buf)
    wanted = [
        header
        for header in found
        if header.count and not header.is_control
        if header.next_offset > from_offset and header.base_offset < to_offset
    ]
    if check_crc:
        for header in wanted:
            verify_crc(buf, header)
    data, described = _payload(buf, wanted, max_decompressed_bytes)
    count = sum(header.count for header in wanted)
    rows, form = _empty_rows(count), decoder(count)
    totals: Totals = form.scan(data, described, from_offset, to_offset, rows)
    if totals.fault != GOOD:
        raise CorruptRecords(wanted[totals.batch].position, _FAULTS[totals.fault])
    if max(totals.key_bytes, totals.value_bytes, totals.header_bytes) > MAX_COLUMN_BYTES:
        raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{len(data)} bytes of records in one call")
    return _columns(form, data, rows, totals, columns)


def _payload(buf: Buffer, wanted: Sequence[BatchHeader], max_bytes: int) -> tuple[Bytes, Batches]:
    """One array with the records of all batches: `buf` itself if no batch is compressed."""
    payloads = [records_payload(buf, header, max_bytes) for header in wanted]
    if all(header.codec == Codec.NONE for header in wanted):
        data: Buffer = buf
        starts = [header.position + BATCH_OVERHEAD for header in wanted]
    else:
        data = b"".join(payloads) if len(payloads) > 1 else payloads[0]
        starts = np.cumsum([0, *map(len, payloads[:-1])]).tolist()
    ends = [start + len(payload) for start, payload in zip(starts, payloads, strict=True)]
    return readonly_bytes(data), Batches(
        *(
            np.array(numbers, np.int64)
            for numbers in (
                starts,
                ends,
                [header.count for header in wanted],
                [header.base_offset for header in wanted],
                [header.last_offset for header in wanted],
                [header.base_timestamp for header in wanted],
                [header.max_timestamp if header.is_log_append_time else NOT_APPEND_TIME for header in wanted],
            )
        )
    )


def _empty_rows(count: int) -> Rows:
    """Space for `count` rows. The payload bounds the count, because no record is smaller than MIN_RECORD_BYTES."""
    longs = [np.empty(count, np.int64) for _ in range(5)]
    lengths = [np.empty(count, np.int32) for _ in range(4)]
    return Rows(longs[0], longs[1], longs[2], lengths[0], longs[3], lengths[1], longs[4], lengths[2], lengths[3])


def _columns(form: Any, data: Bytes, rows: Rows, totals: Totals, columns: Collection[str]) -> pa.RecordBatch:
    count = totals.rows

    def made(name: str) -> Any:
        if name == "key":
            return _field(form, data, rows.key_starts, rows.key_lengths, count, totals.key_bytes, totals.null_keys)
        if name == "value":
            lengths = rows.value_lengths
            return _field(form, data, rows.value_starts, lengths, count, totals.value_bytes, totals.null_values)
        if name == "headers":
            return _headers(form, data, rows, totals)
        numbers: dict[str, Any] = {"offset": rows.offsets, "timestamp": rows.timestamps, SIZE: rows.sizes}
        return pa.array(numbers[name][:count])

    schema = pa.schema([field for field in _EVERY if field.name in columns])
    return pa.RecordBatch.from_arrays([made(field.name) for field in schema], schema=schema)


def _field(
    form: Any,
    data: Bytes,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    count: int,
    total_bytes: int,
    nulls: int,
) -> Any:
    offsets = np.empty(count + 1, np.int32)
    out, valid = np.empty(total_bytes, np.uint8), np.empty(count if nulls else 0, np.uint8)
    form.gather(data, starts, lengths, count, offsets, out, valid)
    return from_parts(pa.binary(), offsets, out, valid)


def _headers(form: Any, data: Bytes, rows: Rows, totals: Totals) -> Any:
    entries = totals.header_entries
    list_offsets = np.empty(totals.rows + 1, np.int32)
    name_starts, value_starts = np.empty(entries, np.int64), np.empty(entries, np.int64)
    name_lengths, value_lengths = np.empty(entries, np.int32), np.empty(entries, np.int32)
    form.find_headers(
        data,
        len(data),
        rows.header_starts,
        rows.header_counts,
        totals.rows,
        list_offsets,
        name_starts,
        name_lengths,
        value_starts,
        value_lengths,
    )
    name_bytes = int(name_lengths.sum(dtype=np.int64))
    names = _field(form, data, name_starts, name_lengths, entries, name_bytes, 0)
    value_bytes, nulls = int(value_lengths.clip(0).sum(dtype=np.int64)), int((value_lengths < 0).sum())
    values = _field(form, data, value_starts, value_lengths, entries, value_bytes, nulls)
    structs = pa.StructArray.from_arrays([_as_text(names), values], fields=list(HEADER_TYPE))
    return pa.Array.from_buffers(HEADERS_TYPE, totals.rows, [None, as_buffer(list_offsets)], children=[structs])


def _as_text(names: Any) -> Any:
    """Names as strings; invalid UTF-8 is repaired as in the plain codec."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())
