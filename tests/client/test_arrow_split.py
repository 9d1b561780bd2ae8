"""Rows to partitions: each row once, in order, where its key, its column or its turn says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.arrow_split import MIN_SHARES, ArrowColumns, split
from quorumlog.records import decode_batch, headers

BATCH_BYTES = 200


def columns_of(rows: int, **more: list[Any]) -> ArrowColumns:
    values = pa.array([b"%d" % row for row in range(rows)], pa.binary())
    return ArrowColumns.of(pa.table({"value": values, **more}), default_timestamp_ms=7)


def placed(columns: ArrowColumns, partitions: int, fixed: int | None, turn: int) -> dict[int, list[int]]:
    """The row numbers of each partition as its batches hold them; `places` have to say the same."""
    found: dict[int, list[int]] = {}
    for partition, rows in split(columns, partitions, fixed, turn, BATCH_BYTES):
        for unsealed, places in columns.encode(rows, BATCH_BYTES, "none"):
            data = unsealed.seal(1, 0, 0)
            (header,) = headers(data)
            values = [int(record.value or b"") for record in decode_batch(data, header)]
            assert values == list(places)
            found.setdefault(partition, []).extend(values)
    return found


@given(st.integers(0, 50), st.integers(1, 8), st.integers(0, 20))
def test_rows_without_keys_go_in_equal_ranges_by_turns(rows: int, partitions: int, turn: int) -> None:
    wanted: dict[int, list[int]] = {}
    for row in range(rows):
        wanted.setdefault((row * partitions // rows + turn) % partitions, []).append(row)
    assert placed(columns_of(rows), partitions, None, turn) == wanted


@pytest.mark.parametrize("rows", [100, 4_000])
def test_a_topic_of_many_partitions_gets_batches_not_single_rows(rows: int) -> None:
    columns = columns_of(rows)
    turns = [list(split(columns, 1_000, None, turn, BATCH_BYTES)) for turn in range(3)]
    assert [partition for turn in turns for partition, _ in turn] == list(range(3 * len(turns[0])))
    assert len(turns[0]) == max(MIN_SHARES, columns.values.nbytes // BATCH_BYTES) < 1_000
    for turn in turns:
        assert [row for _, share in turn for row in range(share.start, share.stop)] == list(range(rows))


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
