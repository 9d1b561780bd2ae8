"""Rows to partitions: each row once, in order, by its key, its partition column or its turn."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.batches.arrow_split import MIN_SHARES, ROW_BYTES, ArrowColumns, split
from quorumlog.client.batches.partitioning import TableTurns
from quorumlog.records import decode_batch, headers

BATCH_BYTES = 200
NOW = {"default_timestamp_ms": 7}


def columns_of(rows: int, **more: list[Any]) -> ArrowColumns:
    values = pa.array([b"%d" % row for row in range(rows)], pa.binary())
    return ArrowColumns.of(pa.table({"value": values, **more}), default_timestamp_ms=7)


def placed(columns: ArrowColumns, partitions: int, fixed: int | None, turn: int) -> dict[int, list[int]]:
    """The row numbers of each partition, from its batches; `places` must agree."""
    found: dict[int, list[int]] = {}
    for partition, rows in split(columns, partitions, fixed, turn, BATCH_BYTES):
        for unsealed, places in columns.encode(rows, BATCH_BYTES, "none"):
            data = unsealed.seal(1, 0, 0)
            (header,) = headers(data)
            values = [int(record.value or b"") for record in decode_batch(data, header)]
            assert values == list(places)
            found.setdefault(partition, []).extend(values)
    return found


def rows_of_batch(rows: int) -> int:
    return BATCH_BYTES * rows // (int(columns_of(rows).values.nbytes) + ROW_BYTES * rows)


@given(st.integers(0, 50), st.integers(2, 8), st.integers(0, 20))
def test_rows_without_keys_go_in_equal_ranges_from_the_first_partition_on(
    rows: int, partitions: int, first: int
) -> None:
    wanted: dict[int, list[int]] = {}
    for row in range(rows):
        shares = max(min(rows, partitions), -(-rows // rows_of_batch(rows)))
        wanted.setdefault((row * shares // rows + first) % partitions, []).append(row)
    assert placed(columns_of(rows), partitions, None, first) == wanted


@given(st.integers(1, 3_000), st.integers(0, 999))
def test_a_topic_of_many_partitions_gets_batches_not_single_rows(rows: int, first: int) -> None:
    columns = columns_of(rows)
    shares = list(split(columns, 1_000, None, first, BATCH_BYTES))
    assert [partition for partition, _ in shares] == [(first + number) % 1_000 for number in range(len(shares))]
    assert [row for _, share in shares for row in range(share.start, share.stop)] == list(range(rows))
    assert len(shares) >= min(rows, MIN_SHARES)


@pytest.mark.parametrize("partitions", [2, 6, 1_000])
@pytest.mark.parametrize("record_bytes", [1, 100, 1_024, 15_000])
def test_a_share_of_a_partition_fits_one_batch(record_bytes: int, partitions: int) -> None:
    """Regression: one row more than fits made a tiny batch after each full one."""
    batch_bytes = 64 << 10
    columns = ArrowColumns.of(pa.table({"value": [bytes(record_bytes)] * (3_000_000 // record_bytes)}), **NOW)
    shares = list(split(columns, partitions, None, 0, batch_bytes))
    assert MIN_SHARES < len(shares) < 1_000
    assert [partition for partition, _ in shares] == [number % partitions for number in range(len(shares))]
    assert {len(list(columns.encode(rows, batch_bytes, "none"))) for _, rows in shares} == {1}


@pytest.mark.parametrize("partitions", [6, 250])
@pytest.mark.parametrize("sizes", [(1,), (7,), (100,), (100, 2_000), (3, 40, 1_000)], ids=str)
def test_over_many_tables_all_partitions_get_equal_shares(sizes: tuple[int, ...], partitions: int) -> None:
    """Regression: the turn advanced by the partitions that a table filled, which left out most of them."""
    tables = [columns_of(rows) for rows in sizes]
    turns, got = TableTurns(random.Random(1)), [0] * partitions
    for number in range(3_000):
        table = tables[number % len(tables)]
        shares = list(split(table, partitions, None, turns.first("t", partitions), BATCH_BYTES))
        turns.used("t", len(shares), partitions)
        for partition, rows in shares:
            got[partition] += rows.stop - rows.start
    assert max(got) <= 1.25 * min(got)


def test_producers_begin_at_different_partitions() -> None:
    assert len({TableTurns(random.Random(seed)).first("t", 1_000) for seed in range(50)}) > 40


@given(st.lists(st.integers(0, 3), max_size=50))
def test_a_partition_column_decides(targets: list[int]) -> None:
    columns = columns_of(len(targets), partition=targets)
    wanted: dict[int, list[int]] = {}
    for row, target in enumerate(targets):
        wanted.setdefault(target, []).append(row)
    assert placed(columns, 4, None, 0) == wanted


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_named_partition_gets_all(partitions: int) -> None:
    assert placed(columns_of(30, key=[b"k"] * 30), partitions, 0, 3) == {0: list(range(30))}
