"""Which rows of a table a load replaces, and what stays of files that something else has written."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.ids import NO_EPOCH, Offset
from quorumlog.spark.load.folder import NO_DAY, Commit, Layout, LoadedFile, LoadedRange, Plan, PlannedRange, range_name
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.load.table import Share, Shares, TableFile, added, count_rows, replaced, take_out
from quorumlog.spark.stream.offset import StreamOffset
from tests.spark.load_world import TOPIC, TOPIC_ID

MANY_S = 5.0
OWN = f"topic={TOPIC}/p=1/{10:020}-{20:020}"


def ranged(start: int, end: int, partition: int = 1, *, is_kept: bool = False) -> LoadedRange:
    file = LoadedFile(path=f"{start}", rows=1, bytes=1, crc32c=0)
    return LoadedRange(
        topic=TOPIC, partition=partition, start=Offset(start), end=Offset(end), files=(file,), is_kept=is_kept
    )  # fmt: skip


def file_of(path: str, places: Sequence[tuple[int | None, int]], day: str = "", topic: str = TOPIC) -> TableFile:
    partitions, offsets = zip(*places, strict=True)
    rows = pa.table({"partition": pa.array(partitions, pa.int32()), "offset": pa.array(offsets, pa.int64())})
    return TableFile(
        path=path, topic=topic, day=day, read=lambda columns: rows.select(list(columns or rows.column_names))
    )


@pytest.mark.parametrize(
    ("path", "ranges", "share"),
    [
        (f"{OWN}.parquet", [ranged(10, 20)], Share.ALL),
        (f"dt=2026-11-20/{OWN}.7.parquet", [ranged(0, 30)], Share.ALL),
        (f"{OWN}.parquet", [ranged(0, 10), ranged(20, 30)], Share.NONE),
        (f"{OWN}.parquet", [ranged(0, 11)], Share.SOME),
        (f"{OWN}.parquet", [ranged(10, 20, partition=2)], Share.NONE),
        ("part-0001.parquet", [ranged(10, 20)], Share.SOME),
        ("part-0001.parquet", [], Share.NONE),
    ],
)
def test_a_name_tells_what_is_in_a_file(path: str, ranges: list[LoadedRange], share: Share) -> None:
    assert Shares(ranges).of(path, TOPIC) is share
    assert Shares(ranges).of(path.replace(TOPIC, "other"), "other") is Share.NONE


def test_many_files_and_many_ranges_take_little() -> None:
    """Each file is compared with the ranges that it cuts: 20,000 of each took a minute."""
    count = 20_000
    ranges = [ranged(10 * i, 10 * i + 10) for i in range(count)]
    paths = [range_name(TOPIC, 1, Offset(10 * i + i % 2), Offset(10 * i + 10 + i % 2)) for i in range(count)]
    began, shares = time.process_time(), Shares(ranges)
    found = Counter(shares.of(path, TOPIC) for path in paths)
    assert found == {Share.ALL: count // 2, Share.SOME: count // 2}
    assert time.process_time() - began < MANY_S


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=6), st.integers(0, 9), st.integers(1, 9))
def test_shares_are_those_of_all_ranges(places: list[tuple[int, int]], start: int, length: int) -> None:
    """Also of ranges that overlap, which no folder should have."""
    ranges, end = [ranged(begin, begin + size) for begin, size in places], start + length
    rows = set(range(start, end))
    cuts = [rows & set(range(one.start, one.end)) for one in ranges]
    wanted = Share.ALL if rows in cuts else Share.SOME if any(cuts) else Share.NONE
    assert Shares(ranges).of(range_name(TOPIC, 1, Offset(start), Offset(end)), TOPIC) is wanted


def test_what_stays_of_a_file_goes_into_a_new_one(tmp_path: Path) -> None:
    """Also rows of which nobody knows where they belong."""
    store = DirectoryStore(str(tmp_path))
    mixed = file_of("part-1", [(1, 9), (1, 10), (1, 19), (1, 20), (2, 15), (None, 15)], day=NO_DAY)
    whole, apart = file_of("part-2", [(1, 12)]), file_of("part-3", [(1, 30)])
    own, foreign = file_of(f"{OWN}.parquet", [(1, 10)]), file_of("part-4", [(1, 12)], topic="other")
    leaving, rests = take_out([mixed, whole, apart, own, foreign], [ranged(10, 20)], store)
    assert leaving == [mixed, whole, own]
    ((of, rest),) = rests
    assert of is mixed and rest.path.startswith(f"dt={NO_DAY}/topic={TOPIC}/rest-") and rest.rows == 4
    found = pq.read_table(tmp_path / rest.path, partitioning=None).to_pydict()
    assert list(zip(found["partition"], found["offset"], strict=True)) == [(1, 9), (1, 20), (2, 15), (None, 15)]


def test_rows_are_counted_by_range() -> None:
    places = [(1, 0), (1, 9), (1, 10), (1, 35), (2, 5), (2, 5), (3, 1), (None, 1)]
    ranges = [ranged(0, 10), ranged(10, 30), ranged(0, 10, partition=2), ranged(40, 50)]
    found = count_rows([file_of("a", places), file_of("b", [(1, 29)]), file_of("c", [(1, 1)], topic="other")], ranges)
    assert [found[TOPIC, one.partition, one.start] for one in ranges] == [2, 2, 2, 0]


def test_kept_ranges_and_new_ones_replace_nothing() -> None:
    """What the log has lost stays in the table, wherever its rows are by now."""
    planned = tuple(
        PlannedRange(
            topic=TOPIC, partition=1, start=Offset(start), end=Offset(start + 10), start_epoch=NO_EPOCH,
            is_again=start < 20, load=2,
        )
        for start in (0, 10, 20)
    )  # fmt: skip
    common: dict[str, Any] = {
        "number": 2, "load_id": "l", "token": "t", "layout": Layout(),
        "position": StreamOffset(offsets={(TOPIC, 1): Offset(30)}, topic_ids={TOPIC: TOPIC_ID}),
    }  # fmt: skip
    plan = Plan(**common, ranges=planned, metadata_offsets={})
    commit = Commit(**common, ranges=(ranged(0, 10, is_kept=True), ranged(10, 20), ranged(20, 30)))
    assert [one.start for one in replaced(plan, commit)] == [10]
    assert [file.path for _, file in added(commit)] == ["10", "20"]
