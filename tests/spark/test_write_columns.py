"""What a frame must look like to be written, and what its rows must: all is judged before a row is sent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from quorumlog.client.batches.arrow_split import ArrowColumns, split
from quorumlog.client.errors import ConfigError
from quorumlog.records import partition_for_key
from quorumlog.spark.write.sending import topics as by_rows
from quorumlog.spark.write.sending.columns import check_columns
from quorumlog.spark.write.sending.topics import RowRefused, check_partitions, tables_of

TEXT, BYTES = StringType(), BinaryType()
PAIR = StructType([StructField("key", TEXT), StructField("value", BYTES)])
TEXT_PAIR = StructType([StructField("key", TEXT), StructField("value", TEXT)])
ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Columns = list[tuple[str, DataType]]

VALUE = ("value", TEXT)
EVERY: Columns = [
    ("key", BYTES), VALUE, ("headers", ArrayType(PAIR, containsNull=False)), ("topic", TEXT),
    ("partition", IntegerType()), ("timestamp", TimestampType()),
]  # fmt: skip
BAD: list[tuple[str, Columns, str]] = [
    ("no value", [("key", TEXT)], "required column 'value' is not there"),
    ("a typo", [VALUE, ("keys", TEXT)], "column 'keys' cannot be written; did you mean 'key'"),
    ("another case", [("Value", TEXT)], "column 'Value' cannot be written; did you mean 'value'"),
    ("unlike any", [VALUE, ("zzz", TEXT)], "'zzz' cannot be written; The columns are key, value, headers, topic"),
    ("of reads", [VALUE, ("offset", LongType())], "column 'offset' cannot be written"),
    ("twice", [VALUE, VALUE], "column 'value' is there twice"),
    ("a number as key", [VALUE, ("key", IntegerType())], "unsupported type int: it must be string or binary"),
    ("a struct as value", [("value", PAIR)], "'value' has the unsupported type struct<key:string,value:binary>"),
    ("a long as partition", [VALUE, ("partition", LongType())], "unsupported type bigint: it must be int"),
    ("bytes as topic", [VALUE, ("topic", BYTES)], "'topic' has the unsupported type binary: it must be string"),
    ("a time of no zone", [VALUE, ("timestamp", TimestampNTZType())], "timestamp_ntz: it must be timestamp"),
    ("a map as headers", [VALUE, ("headers", MapType(TEXT, BYTES))], "it must be array<struct<key:string,value:b"),
    ("headers of texts", [VALUE, ("headers", ArrayType(TEXT_PAIR))], "'headers' has the unsupported type array<struct"),
]


def frame(columns: Columns) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns])


def test_all_columns_and_the_least() -> None:
    check_columns(frame(EVERY), "")
    check_columns(frame([VALUE]), "orders")


@pytest.mark.parametrize(("columns", "why"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_frame_that_cannot_be_written(columns: Columns, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_columns(frame(columns), "orders")


def test_a_topic_must_be_named_by_the_option_or_by_a_column() -> None:
    with pytest.raises(ConfigError, match=r"no topic is named: set .option\(\"topic\""):
        check_columns(frame([VALUE]), "")


def batch(**columns: Any) -> pa.RecordBatch:
    """value: as many as the others, if it is not given."""
    rows = len(next(iter(columns.values())))
    columns.setdefault("value", [b"%d" % number for number in range(rows)])
    kinds = {"value": pa.binary(), "key": pa.binary(), "topic": pa.string(), "partition": pa.int32(),
        "headers": ARROW_HEADERS, "timestamp": pa.timestamp("us", "UTC")}  # fmt: skip
    return pa.record_batch({name: pa.array(cells, kinds[name]) for name, cells in columns.items()})


WRONG_ROWS = [
    ("no topic", {"topic": ["a", None]}, "", "a row has no topic: its column is null; set"),
    ("an empty topic", {"topic": ["a", ""]}, "", "topic name '': is empty; a name has 1 to 249"),
    ("a long topic", {"topic": ["t" * 250]}, "", "has 250 characters, limit 249"),
    ("an odd topic", {"topic": ["a/b"]}, "", "only ASCII letters"),
    (
        "a null key of a header",
        {"headers": [None, [("a", b"1"), (None, b"2")]]},
        "orders",
        "'orders': a row has a head",
    ),
    ("a null header", {"headers": [[None]], "topic": ["refunds"]}, "", "'refunds': a row has a header whose key is n"),
    ("before 1970", {"timestamp": [-2_000]}, "orders", "topic 'orders': a row's timestamp is -2 ms"),
]


@pytest.mark.parametrize(("columns", "topic", "why"), [c[1:] for c in WRONG_ROWS], ids=[c[0] for c in WRONG_ROWS])
def test_a_row_that_cannot_be_written(columns: dict[str, Any], topic: str, why: str) -> None:
    """Nothing of its batch is handed on, also of the topics before it."""
    with pytest.raises(RowRefused, match=why):
        next(tables_of(batch(**columns), topic))


@pytest.mark.parametrize("wrong", [3, 99, -1])
def test_a_partition_that_is_not_there(wrong: int) -> None:
    check_partitions("orders", batch(partition=[0, None, 2]), 3)
    with pytest.raises(
        RowRefused, match=f"topic 'orders' has 3 partitions, 0 to 2, and a row names partition {wrong};"
    ):
        check_partitions("orders", batch(partition=[0, None, wrong]), 3)


def test_the_option_beats_the_column() -> None:
    ((topic, rows),) = tables_of(batch(topic=["a", None, ""]), "orders")
    assert topic == "orders" and rows.num_rows == 3 and "topic" not in rows.schema.names


@given(st.lists(st.sampled_from(["a", "b", "c.d"]), min_size=1, max_size=30))
def test_rows_go_to_their_topics_in_order(topics: list[str]) -> None:
    found = {topic: rows.column("value").to_pylist() for topic, rows in tables_of(batch(topic=topics), "")}
    assert found == {
        topic: [b"%d" % number for number, one in enumerate(topics) if one == topic] for topic in set(topics)
    }


@given(st.data(), st.integers(1, 7))
def test_partitions_of_rows(data: st.DataObject, count: int) -> None:
    """The named one, else that of the key's hash as Java computes it, else the one for rows without a key."""
    keys = data.draw(st.lists(st.none() | st.binary(max_size=9), min_size=1, max_size=30))
    named = data.draw(st.lists(st.none() | st.integers(0, count - 1), min_size=len(keys), max_size=len(keys)))
    which = {"key": keys, **({"partition": named} if data.draw(st.booleans()) else {})}
    keyless = data.draw(st.integers(0, count - 1))
    columns = ArrowColumns.of(batch(**which), default_timestamp_ms=0)
    found = {}
    for partition, rows in split(columns, count, None, 0, 1000, keyless):
        for row in range(rows.start, rows.stop) if isinstance(rows, slice) else rows.tolist():
            found[row] = partition
    want = {}
    for row, key in enumerate(keys):
        by_key = keyless if key is None else partition_for_key(key, count)
        by_name = which.get("partition", [None] * len(keys))[row]
        want[row] = by_key if by_name is None else by_name
    assert found == want


def test_rows_become_the_same_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark 4.0 gives rows; their times are local."""
    monkeypatch.setattr(by_rows, "MAX_ROWS", 2)
    time = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC).astimezone().replace(tzinfo=None)
    rows = [
        (bytearray(b"k"), "v", [("a", bytearray(b"1")), ("a", None)], "orders", 1, time),
        (None, None, None, "orders", None, None),
        (b"", "", [], "refunds", None, time.astimezone(UTC)),
    ]
    first, second = by_rows.batches_of(iter(rows), frame(EVERY))
    assert (first.num_rows, second.num_rows) == (2, 1)
    cells = first.to_pylist()
    assert cells[0]["headers"] == [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    assert (cells[0]["key"], cells[0]["timestamp"]) == (b"k", time.astimezone(UTC))
    assert set(cells[1].values()) == {None, "orders"}
    assert (second.to_pylist()[0]["key"], second.to_pylist()[0]["headers"]) == (b"", [])


def test_large_values_are_handed_on_before_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_rows, "MAX_BYTES", 100)
    rows = [(b"x" * 60,), (None,), (b"x" * 60,), (b"x",)]
    assert [one.num_rows for one in by_rows.batches_of(rows, frame([("value", BYTES)]))] == [3, 1]
