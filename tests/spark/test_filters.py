"""What is read by Spark's filters holds every row that they let through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import datasource

from quorumlog.client.errors import ConfigError
from quorumlog.spark.read.options import parse_read_options, parse_stream_options
from quorumlog.spark.read.planning import PartitionRange
from tests.spark.versions import NEEDS_FILTERS

if not hasattr(datasource, "EqualTo"):
    pytest.skip(NEEDS_FILTERS, allow_module_level=True)

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from quorumlog.spark.read.filters import Narrowing, narrowing_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PARTITIONS, OFFSETS = 3, 12
ROWS = [
    {"topic": t, "partition": p, "offset": o, "timestamp": EPOCH + timedelta(milliseconds=o * 7 % 5 - 1), "key": k}
    for t in ("a", "b")
    for p in range(PARTITIONS)
    for o, k in enumerate([None, b"", b"k", b"l"] * (OFFSETS // 4))
]
HOLDS = {
    EqualTo: lambda have, value: have == value,
    EqualNullSafe: lambda have, value: have == value,
    In: lambda have, value: have in value,
    GreaterThan: lambda have, value: have > value,
    GreaterThanOrEqual: lambda have, value: have >= value,
    LessThan: lambda have, value: have < value,
    LessThanOrEqual: lambda have, value: have <= value,
}
ORDERED = (GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
TIMES = st.integers(-2_000, 6_000).map(lambda us: EPOCH + timedelta(microseconds=us))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["a", "c"]),
    "partition": st.integers(0, PARTITIONS),
    "offset": st.integers(-1, OFFSETS),
    "timestamp": TIMES,
    "key": st.sampled_from([b"", b"k", b"z"]),
}


def filters() -> st.SearchStrategy[Filter]:
    def of(column: str) -> st.SearchStrategy[Filter]:
        value = VALUES[column]
        plain: list[st.SearchStrategy[Filter]] = [
            st.builds(kind, st.just((column,)), value) for kind in HOLDS if kind is not In
        ]
        some = st.builds(In, st.just((column,)), st.lists(value, min_size=1, max_size=3).map(tuple))
        return st.one_of(*plain, some, st.builds(Not, st.builds(EqualTo, st.just((column,)), value)))

    return st.sampled_from(sorted(VALUES)).flatmap(of)


def passes(row: dict[str, Any], one: Any) -> bool:
    if isinstance(one, Not):
        child: Any = one.child
        return row[child.attribute[0]] is not None and not passes(row, child)
    have = row[one.attribute[0]]
    return have is not None and bool(HOLDS[type(one)](have, one.value))


def can_hold(narrowing: Narrowing, row: dict[str, Any]) -> bool:
    whole = PartitionRange(topic=row["topic"], topic_id=b"i" * 16, partition=row["partition"], start=0, end=OFFSETS)
    if not any(part.start <= row["offset"] < part.end for part in narrowing.ranges([whole])):
        return False
    if narrowing.since_ms is not None and row["timestamp"] < EPOCH + timedelta(milliseconds=narrowing.since_ms):
        return False
    return narrowing.keys is None or row["key"] in narrowing.keys


@given(st.lists(filters(), max_size=4))
def test_no_row_that_passes_is_left_out(found: list[Filter]) -> None:
    narrowing = narrowing_of(found)
    for row in ROWS:
        assert can_hold(narrowing, row) or not all(passes(row, one) for one in found)


def at(**fields: Any) -> Narrowing:
    return Narrowing(**fields)


CASES: list[tuple[str, list[Filter], Narrowing]] = [
    ("partitions", [In(("partition",), (1, 2)), EqualTo(("partition",), 2)], at(partitions=frozenset([2]))),
    ("offsets", [GreaterThan(("offset",), 4), LessThanOrEqual(("offset",), 9)], at(start=5, end=10)),
    ("one offset", [EqualTo(("offset",), 7)], at(start=7, end=8)),
    ("behind a part", [GreaterThan(("timestamp",), EPOCH + timedelta(microseconds=2_500))], at(since_ms=3)),
    ("behind", [GreaterThan(("timestamp",), EPOCH + timedelta(milliseconds=2))], at(since_ms=3)),
    ("since a part", [GreaterThanOrEqual(("timestamp",), EPOCH + timedelta(microseconds=2_500))], at(since_ms=3)),
    ("since", [GreaterThanOrEqual(("timestamp",), EPOCH + timedelta(milliseconds=2))], at(since_ms=2)),
    ("a time", [EqualTo(("timestamp",), EPOCH + timedelta(milliseconds=2))], at(since_ms=2)),
    ("before all", [GreaterThan(("timestamp",), EPOCH - timedelta(milliseconds=2))], at()),
    ("a key", [IsNotNull(("key",)), EqualTo(("key",), b"k")], at(keys=frozenset([b"k"]))),
    ("null is no key", [EqualNullSafe(("key",), None)], at()),
    ("until", [LessThan(("timestamp",), EPOCH)], at()),
    ("a field of a struct", [EqualTo(("offset", "x"), 1)], at()),
    ("another column", [EqualTo(("value",), b"v")], at()),
]


@pytest.mark.parametrize(("found", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_narrowings(found: list[Filter], want: Narrowing) -> None:
    assert narrowing_of(found) == want


def test_only_batches_push_filters() -> None:
    base = {"bootstrap.servers": "h:1", "subscribe": "t", "pushdown": "true"}
    assert parse_read_options(base).pushdown
    with pytest.raises(ConfigError, match="'pushdown' is for batch reads"):
        parse_stream_options(base)
