"""Chunks as Spark's rows: exactly Spark's schema, and the records of the plain codec."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructField, StructType

from quorumlog.client.consumer import decode_chunk
from quorumlog.client.errors import ConfigError
from quorumlog.client.fetching.position import Chunk
from quorumlog.records import Record, encode_batch, headers, stamp
from quorumlog.spark.read.columns import MAX_TIMESTAMP_MS, BadField, arrow_schema, to_batch
from quorumlog.spark.read.options import Shape
from quorumlog.spark.read.schema import check_schema, schema_of

RECORDS = [
    Record(offset=0, timestamp_ms=1_000, key=b"k", value=b"v", headers=(("h", b"1"), ("h", None))),
    Record(offset=1, timestamp_ms=-1, key=None, value=None, headers=()),
    Record(offset=2, timestamp_ms=1_234, key=b"", value=b"", headers=()),
]


def full_schema(include_headers: bool) -> StructType:
    return schema_of(Shape(include_headers=include_headers))


def stored(records: list[Record], base: int = 0) -> bytes:
    """The batch as a broker stores it, at offset `base`."""
    data = encode_batch(records)
    (header,) = headers(data)
    first, rest = stamp(data, header, base, 1)
    return first + bytes(rest)


def chunk(data: bytes, first: int, stop: int) -> Chunk:
    return Chunk(
        topic="t",
        partition=4,
        records=data,
        first_offset=first,
        stop_offset=stop,
        next_offset=stop,
        high_watermark=stop,
    )


def test_the_schema_is_that_of_kafkas_source() -> None:
    assert full_schema(True).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert "headers" not in full_schema(False).names


@pytest.mark.parametrize("include_headers", [False, True])
def test_batches_have_exactly_sparks_arrow_schema(include_headers: bool) -> None:
    schema = arrow_schema(full_schema(include_headers))
    batch = to_batch(chunk(stored(RECORDS), 0, 3), schema)
    assert batch.schema.equals(schema, check_metadata=True)
    batch.validate(full=True)


def test_a_timestamp_that_microseconds_cannot_hold_is_null() -> None:
    """As of a producer that counts in ns. Any other one keeps its value, and no task fails for it."""
    times = (1_700_000_000_000_000_000, MAX_TIMESTAMP_MS + 1, MAX_TIMESTAMP_MS, -1)
    records = [Record(offset=i, timestamp_ms=ms, key=None, value=b"", headers=()) for i, ms in enumerate(times)]
    batch = to_batch(chunk(stored(records), 0, len(times)), arrow_schema(full_schema(False)))
    found = batch.column("timestamp").cast(pa.int64()).to_pylist()
    assert found == [None, None, MAX_TIMESTAMP_MS * 1000, -1_000]


def test_rows() -> None:
    batch = to_batch(chunk(stored(RECORDS, 7), 7, 10), arrow_schema(full_schema(True)))
    first, second, third = batch.to_pylist()
    assert first == {
        "key": b"k", "value": b"v", "topic": "t", "partition": 4, "offset": 7, "timestampType": 0,
        "timestamp": datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC),
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
    }  # fmt: skip
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)
    assert (third["key"], third["value"]) == (b"", b"")


def test_only_wanted_columns_in_the_wanted_order() -> None:
    schema = StructType([StructField("offset", LongType()), StructField("topic", StringType())])
    check_schema(schema, Shape())
    batch = to_batch(chunk(stored(RECORDS), 1, 3), arrow_schema(schema))
    assert batch.to_pylist() == [{"offset": 1, "topic": "t"}, {"offset": 2, "topic": "t"}]


def test_a_schema_of_other_columns_or_types_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown column 'ofset'"):
        check_schema(StructType([StructField("ofset", LongType())]), Shape())
    with pytest.raises(ConfigError, match="'offset' is bigint, not string"):
        check_schema(StructType([StructField("offset", StringType())]), Shape())
    with pytest.raises(ConfigError, match="'key' is string, not binary"):
        check_schema(full_schema(False), Shape(key_format="utf8"))


def moved(base: int) -> list[Record]:
    return [Record(base + r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in RECORDS]


def test_metadata_columns() -> None:
    """Of three batches: of a producer whose numbers wrap, of one without numbers, and of a transaction."""
    wrapping = encode_batch(RECORDS, producer_id=9, producer_epoch=3, base_sequence=2**31 - 2, leader_epoch=5)
    plain = encode_batch(moved(3)[:2], base_offset=3, leader_epoch=6)
    committed = encode_batch(moved(7)[:1], base_offset=7, producer_id=8, producer_epoch=0, base_sequence=40)
    schema = schema_of(Shape(include_metadata=True, include_value=False))
    assert schema.simpleString() == (
        "struct<key:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int,"
        "leaderEpoch:int,producerId:bigint,producerEpoch:smallint,sequence:int,isControl:boolean,serializedSize:int>"
    )
    batch = to_batch(chunk(wrapping + plain + committed, 1, 8), arrow_schema(schema))
    batch.validate(full=True)
    rows = [
        tuple(row[name] for name in ("offset", "leaderEpoch", "producerId", "producerEpoch", "sequence", "isControl"))
        for row in batch.to_pylist()
    ]
    assert rows == [
        (1, 5, 9, 3, 2**31 - 1, False),
        (2, 5, 9, 3, 0, False),
        (3, 6, -1, -1, -1, False),
        (4, 6, -1, -1, -1, False),
        (7, -1, 8, 0, 40, False),
    ]
    sizes = batch.column("serializedSize").to_pylist()
    assert sum(sizes[2:4]) == len(plain) - 61 and sizes[4] == len(committed) - 61


def test_a_value_that_is_left_out_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    from quorumlog.records.columnar import decode

    copied: list[int] = []
    field = decode._field

    def counted(form: Any, data: Any, starts: Any, lengths: Any, count: int, total: int, nulls: int) -> Any:
        copied.append(total)
        return field(form, data, starts, lengths, count, total, nulls)

    monkeypatch.setattr(decode, "_field", counted)
    data = stored([Record(offset=0, timestamp_ms=1, key=b"kk", value=bytes(1000), headers=())])
    to_batch(chunk(data, 0, 1), arrow_schema(schema_of(Shape(include_value=False))))
    assert copied == [2]
    with pytest.raises(ConfigError, match="'value' is asked for and left out by includeValue=false"):
        schema_of(Shape(include_value=False, columns=("value",)))
    with pytest.raises(ConfigError, match="'value' is asked for and left out by includeValue=false"):
        check_schema(full_schema(False), Shape(include_value=False))


def test_columns_are_chosen_by_name() -> None:
    shape = Shape(columns=("offset", "headers", "key"), key_format="long")
    assert schema_of(shape).simpleString() == (
        "struct<offset:bigint,headers:array<struct<key:string,value:binary>>,key:bigint>"
    )
    with pytest.raises(ConfigError, match="unknown column 'ofset' in the option columns"):
        schema_of(Shape(columns=("ofset",)))


def keyed(*keys: bytes | None) -> Chunk:
    records = [Record(offset=i, timestamp_ms=1, key=key, value=key, headers=()) for i, key in enumerate(keys)]
    return chunk(stored(records), 0, len(keys))


GOOD: list[tuple[str, tuple[bytes | None, ...], list[Any]]] = [
    ("utf8", (b"a", None, b"", "ü".encode()), ["a", None, "", "ü"]),
    ("int", (b"\0\0\0\7", None, b"\xff\xff\xff\xff"), [7, None, -1]),
    ("long", (b"\x80" + bytes(7), None, bytes(7) + b"\1"), [-(2**63), None, 1]),
    ("long", (None,), [None]),
]
BAD = [("utf8", b"\xff"), ("int", b"\0\0\7"), ("long", b"12345678901"), ("int", b"")]


@pytest.mark.parametrize(("form", "keys", "want"), GOOD)
def test_keys_and_values_are_typed(form: str, keys: tuple[bytes | None, ...], want: list[Any]) -> None:
    schema = arrow_schema(schema_of(Shape(key_format=form, value_format=form)))
    batch = to_batch(keyed(*keys), schema)
    batch.validate(full=True)
    assert batch.column("key").to_pylist() == want == batch.column("value").to_pylist()
    assert to_batch(replace(keyed(*keys), stop_offset=0), schema).num_rows == 0


@pytest.mark.parametrize(("form", "bad"), BAD)
def test_a_key_that_does_not_fit_is_named_or_null(form: str, bad: bytes) -> None:
    good = {"utf8": b"k", "int": bytes(4), "long": bytes(8)}[form]
    schema = arrow_schema(schema_of(Shape(key_format=form)))
    with pytest.raises(BadField, match=r"t-4 at offset 2: its key is not .*badKeys=null.*keyFormat=binary"):
        to_batch(keyed(good, None, bad, good), schema)
    batch = to_batch(keyed(good, None, bad, good), schema, ["key"])
    assert [key is None for key in batch.column("key").to_pylist()] == [False, True, True, False]
    assert batch.column("value").to_pylist() == [good, None, bad, good]
    values = arrow_schema(schema_of(Shape(value_format=form)))
    with pytest.raises(BadField, match=r"its value is not .*badValues=null.*valueFormat=binary"):
        to_batch(keyed(bad), values, ["key"])


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=50), st.data())
def test_numbers_are_those_of_kafkas_serializer(numbers: list[int | None], data: st.DataObject) -> None:
    whole = keyed(*(None if number is None else number.to_bytes(8, "big", signed=True) for number in numbers))
    first = data.draw(st.integers(0, len(numbers) - 1))
    cut = replace(whole, first_offset=first)
    batch = to_batch(cut, arrow_schema(schema_of(Shape(key_format="long", columns=("key",)))))
    assert batch.column("key").to_pylist() == numbers[first:]


def records_of() -> st.SearchStrategy[list[Record]]:
    data = st.one_of(st.none(), st.binary(max_size=8))
    pairs = st.lists(st.tuples(st.text(max_size=3), data), max_size=2).map(tuple)
    made = st.builds(
        Record, offset=st.just(0), timestamp_ms=st.integers(-1, 10**12), key=data, value=data, headers=pairs
    )
    return st.lists(made, min_size=1, max_size=6).map(
        lambda found: [Record(i, r.timestamp_ms, r.key, r.value, r.headers) for i, r in enumerate(found)]
    )


@settings(max_examples=60)
@given(st.lists(records_of(), min_size=1, max_size=3), st.data())
def test_the_same_records_as_the_plain_codec(batches: list[list[Record]], data: st.DataObject) -> None:
    stream, end = b"", 0
    for records in batches:
        stream += stored(records, end)
        end += len(records)
    first = data.draw(st.integers(0, end - 1))
    stop = data.draw(st.integers(first + 1, end))
    cut = chunk(stream + stream[: data.draw(st.integers(0, 40))], first, stop)
    batch: Any = to_batch(cut, arrow_schema(full_schema(True)))
    plain = decode_chunk(cut)
    assert batch.column("offset").to_pylist() == [r.offset for r in plain]
    assert batch.column("key").to_pylist() == [r.key for r in plain]
    assert batch.column("value").to_pylist() == [r.value for r in plain]
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [r.timestamp_ms * 1000 for r in plain]
    assert batch.column("headers").to_pylist() == [
        [{"key": name, "value": content} for name, content in r.headers] or None for r in plain
    ]
