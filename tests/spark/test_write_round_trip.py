"""What the sink has written is what the source reads: keys, values, headers, timestamps, and which of them are null."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.batches.arrow_split import ArrowColumns, split
from quorumlog.client.cluster.topic_limit import NO_LIMIT
from quorumlog.records import NO_PRODUCER, NO_SEQUENCE
from quorumlog.records.columnar import decode_columns
from quorumlog.spark.write.sending.topics import tables_of

NOW_MS = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
KINDS = {"key": pa.binary(), "value": pa.binary(), "headers": HEADERS, "timestamp": pa.timestamp("us", "UTC")}
Row = dict[str, Any]

SMALL_BYTES = st.none() | st.just(b"") | st.binary(max_size=3)
SMALL_TEXT = st.sampled_from(["", "a", "b", "größe"])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": SMALL_BYTES,
            "value": SMALL_BYTES,
            "headers": st.none()
            | st.lists(st.fixed_dictionaries({"key": SMALL_TEXT, "value": SMALL_BYTES}), max_size=4),
            "timestamp": st.none() | st.integers(0, 2**52),
        }
    ),
    min_size=1,
    max_size=20,
)


def written(rows: list[Row], text_keys: bool, first: int) -> Any:
    """The rows as Spark hands them over. first: rows before them in the same buffers, as a slice has."""
    padded = [{"key": b"x", "value": b"x", "headers": [{"key": "x", "value": b"x"}], "timestamp": 1}] * first + rows
    kinds = {**KINDS, "key": pa.string()} if text_keys else KINDS
    cells = {name: [row[name] for row in padded] for name in KINDS}
    if text_keys:
        cells["key"] = [None if key is None else key.hex() for key in cells["key"]]
    return pa.record_batch({name: pa.array(cells[name], kinds[name]) for name in KINDS}).slice(first)


def read(batch: Any, partitions: int, batch_bytes: int) -> list[Row]:
    """By way of the sink's columns, the bytes of batches, and the source's decoder."""
    found: list[Row] = []
    for _, rows in tables_of(batch, "orders"):
        columns = ArrowColumns.of(rows, default_timestamp_ms=NOW_MS)
        for _, chosen in split(columns, partitions, None, 0, batch_bytes, 0):
            for unsealed, _ in columns.encode(chosen, min(batch_bytes, NO_LIMIT.batch_bytes), "none"):
                sealed = bytes(unsealed.seal(NO_PRODUCER, -1, NO_SEQUENCE, leader_epoch=0))
                wanted = ("key", "value", "headers", "timestamp")
                decoded = decode_columns(sealed, from_offset=0, to_offset=unsealed.count, columns=wanted)
                times = decoded.column("timestamp").cast(pa.int64()).to_pylist()
                found += [{**row, "ms": ms} for row, ms in zip(decoded.to_pylist(), times, strict=True)]
    return found


def plain(row: Row) -> str:
    """Names of headers are texts in Spark and in the decoder; null headers and none are the same in a record."""
    return repr(
        (
            row["key"],
            row["value"],
            [tuple(one[name] for name in sorted(one)) for one in row["headers"] or ()],
            row["ms"],
        )
    )


@given(ROWS, st.booleans(), st.integers(0, 9), st.integers(1, 5), st.sampled_from([100, 1_000_000]))
def test_what_is_written_is_read(rows: list[Row], text_keys: bool, first: int, partitions: int, size: int) -> None:
    want = []
    for row in rows:
        key = row["key"].hex().encode() if text_keys and row["key"] is not None else row["key"]
        ms = NOW_MS if row["timestamp"] is None else row["timestamp"] // 1000
        want.append({**row, "key": key, "ms": ms})
    found = read(written(rows, text_keys, first), partitions, size)
    assert sorted(map(plain, found)) == sorted(map(plain, want))
