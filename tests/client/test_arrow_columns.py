"""What a table for `send_arrow` may hold: other types are refused by name before a row is sent."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from quorumlog.client.batches.arrow_split import ArrowColumns
from quorumlog.client.errors import ConfigError, RequestFailed

NOW_MS = 7
PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])
NAMELESS = pa.array([{"key": None, "value": b"1"}, {"key": "k", "value": b"2"}], PAIR)


def columns(**more: Any) -> ArrowColumns:
    given = {"value": pa.array([b"a", b"b"]), **{name: pa.array(*args) for name, args in more.items()}}
    return ArrowColumns.of(pa.table(given), default_timestamp_ms=NOW_MS)


@pytest.mark.parametrize(
    ("name", "cells", "why"),
    [
        ("value", ([1, 2],), "column 'value' must be binary or string, not int64"),
        ("key", ([1.5, None],), "column 'key' must be binary or string, not double"),
        ("timestamp", (["x", "y"],), "column 'timestamp' must be int64 ms or a timestamp, not string"),
        ("timestamp", ([1.5, 2.5],), "column 'timestamp' must be int64 ms or a timestamp, not double"),
        ("partition", ([1.5, 0.0],), "column 'partition' must be an integer, not double"),
        ("partition", (["1", "0"],), "column 'partition' must be an integer, not string"),
        ("headers", (["k", "k"],), "column 'headers' must be a list of structs of name and value.* not string"),
        ("headers", ([[{"a": "k"}], None],), "column 'headers' must be a list of structs of name and value"),
        ("headers", ([[{"a": 1, "b": b"v"}], None],), "column 'headers' must be a list of structs of name and value"),
    ],
)
def test_a_column_of_another_type_is_refused_by_name(name: str, cells: tuple[Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        columns(**{name: cells})


def test_a_column_that_is_there_twice_is_refused() -> None:
    twice = pa.Table.from_arrays([pa.array([b"a"])] * 2, names=["value", "value"])
    with pytest.raises(ConfigError, match="column 'value' is there twice"):
        ArrowColumns.of(twice, default_timestamp_ms=NOW_MS)


def test_a_column_of_nulls_only_has_no_type_and_is_as_none() -> None:
    """`pa.table` makes one of a list of None."""
    nulls = ([None, None],)
    made = columns(key=nulls, headers=nulls, timestamp=nulls, partition=nulls)
    assert (made.keys, made.headers, made.partitions, list(made.timestamps_ms)) == (None, None, None, [NOW_MS] * 2)
    assert columns(headers=([[], None],)).headers is None
    assert ArrowColumns.of(pa.table({"value": [None]}), default_timestamp_ms=0).values.to_pylist() == [None]


def test_a_header_without_a_name_is_refused_as_a_record_and_not_where_no_row_has_it() -> None:
    kind = pa.list_(PAIR)
    with pytest.raises(RequestFailed, match=r"INVALID_RECORD: a header without a name"):
        columns(headers=([[{"key": None, "value": b"1"}], None], kind))
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), NAMELESS, type=kind, mask=pa.array([True, False])
    )
    table = pa.table({"value": pa.array([b"a", b"b"]), "headers": hidden})
    made = ArrowColumns.of(table, default_timestamp_ms=NOW_MS)
    (batch,) = [one for one, _ in made.encode(slice(0, 2), 10_000, "none")]
    assert batch.count == 2


def test_headers_by_a_map() -> None:
    made = columns(headers=([[("k", b"v")], None], pa.map_(pa.string(), pa.binary())))
    (batch,) = [one for one, _ in made.encode(slice(0, 2), 10_000, "none")]
    assert batch.count == 2 and b"k" in bytes(batch.buffer)
