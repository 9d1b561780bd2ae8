"""`--verify`: what is judged a fault of a loaded folder, and what is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorumlog.ids import NO_EPOCH, Offset
from quorumlog.spark.load.driving import drive
from quorumlog.spark.load.folder import (
    Commit,
    Layout,
    LoadedRange,
    Lost,
    Plan,
    PlannedRange,
    commit_name,
    plan_name,
    range_name,
)
from quorumlog.spark.load.parquet import RangeFiles
from quorumlog.spark.load.protocol import publish
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.load.verifying import verify
from quorumlog.spark.stream.offset import StreamOffset
from tests.spark.load_world import TOPIC_ID

SCHEMA = pa.schema([("offset", pa.int64())])


def ranged(store: DirectoryStore, start: int, end: int, offsets: list[int]) -> LoadedRange:
    planned = PlannedRange(topic="t", partition=0, start=Offset(start), end=Offset(end), start_epoch=NO_EPOCH)
    with store.scratch(1) as folder, RangeFiles(folder, planned, SCHEMA, by_day=False) as files:
        files.add(pa.record_batch([pa.array(offsets, pa.int64())], schema=SCHEMA))
        done = drive(publish(planned, files.finish(), 1), store)
    return LoadedRange(topic="t", partition=0, start=planned.start, end=planned.end, files=done)


def commit(store: DirectoryStore, number: int, end: int, *ranges: LoadedRange, lost: tuple[Lost, ...] = ()) -> None:
    position = StreamOffset(offsets={("t", 0): Offset(end)}, cluster_id="c", topic_ids={"t": TOPIC_ID})
    made = Commit(
        number=number, load_id="l", token="w", layout=Layout(), position=position, ranges=ranges, lost=lost
    )  # fmt: skip
    assert store.create(commit_name(number), made.to_bytes())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DirectoryStore]:
    """Two loads: offsets 0 to 10 with gaps, and 10 to 20 without a record."""
    made = DirectoryStore(str(tmp_path))
    commit(made, 1, 10, ranged(made, 0, 5, [0, 3]), ranged(made, 5, 10, [5, 6, 7, 8, 9]))
    commit(made, 2, 20, LoadedRange(topic="t", partition=0, start=Offset(10), end=Offset(20), files=()))
    yield made


def path_of(store: DirectoryStore, start: int, end: int) -> Path:
    return Path(store.root) / range_name("t", 0, Offset(start), Offset(end))


def test_gaps_inside_ranges_are_none(store: DirectoryStore) -> None:
    shown: list[tuple[int, int]] = []
    report = verify(store, lambda done, total: shown.append((done, total)))
    assert (report.commits, report.files, report.rows, report.faults, report.pending) == (2, 2, 7, (), 0)
    assert shown == [(1, 2), (2, 2)]


def test_an_empty_folder_has_no_faults(tmp_path: Path) -> None:
    assert verify(DirectoryStore(str(tmp_path / "none"))).faults == ()


def test_gaps_between_ranges(store: DirectoryStore) -> None:
    commit(store, 3, 30, ranged(store, 22, 30, [22]))
    assert verify(store).faults == ("t-0: no commit has the offsets 20 to 22; load them with --from 20",)
    commit(store, 4, 30, lost=(Lost(topic="t", partition=0, start=Offset(20), end=Offset(22)),))
    report = verify(store)
    assert report.faults == () and len(report.lost) == 1


def test_ranges_that_overlap_and_a_position_that_they_do_not_reach(store: DirectoryStore) -> None:
    commit(store, 3, 40, ranged(store, 15, 30, [15]))
    assert verify(store).faults == (
        "t-0: two ranges have the offsets 15 to 20", "t-0: the ranges end at 30, and the last commit says 40",
    )  # fmt: skip


def lost_file(store: DirectoryStore) -> None:
    path_of(store, 0, 5).unlink()


def torn(store: DirectoryStore) -> None:
    path_of(store, 0, 5).write_bytes(path_of(store, 0, 5).read_bytes()[:-3])


def fewer_rows(store: DirectoryStore) -> None:
    path_of(store, 0, 5).unlink()
    ranged(store, 0, 5, [0])


def other_rows(store: DirectoryStore) -> None:
    path_of(store, 0, 5).unlink()
    ranged(store, 0, 5, [0, 4])


def strange(store: DirectoryStore) -> None:
    ranged(store, 0, 4, [0])


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (lost_file, "is missing; load its range again with --from 0"),
        (torn, "is no Parquet file"),
        (fewer_rows, "has 1 rows, and its commit counts 2"),
        (other_rows, "has other bytes than were committed"),
        (strange, "is in no commit"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_harm_has_a_name(store: DirectoryStore, harm: Any, fault: str) -> None:
    harm(store)
    (found,) = verify(store).faults
    assert fault in found


@pytest.mark.parametrize(
    ("offsets", "fault"),
    [([20, 30], "has offsets 20 to 30, outside of its range"), ([21, 21], "has more rows than offsets")],
    ids=["outside", "twice"],
)
def test_offsets_that_cannot_be(store: DirectoryStore, offsets: list[int], fault: str) -> None:
    commit(store, 3, 30, ranged(store, 20, 30, offsets))
    (found,) = verify(store).faults
    assert fault in found


def plan(store: DirectoryStore, number: int, planned: PlannedRange) -> None:
    position = StreamOffset(offsets={("t", 0): planned.end}, cluster_id="c", topic_ids={"t": TOPIC_ID})
    made = Plan(
        number=number, load_id="l", token="w", layout=Layout(), position=position, ranges=(planned,),
        metadata_offsets={},
    )  # fmt: skip
    assert store.create(plan_name(number), made.to_bytes())


def fresh(start: int, end: int) -> PlannedRange:
    return PlannedRange(topic="t", partition=0, start=Offset(start), end=Offset(end), start_epoch=NO_EPOCH)


def test_files_of_a_load_that_is_under_way_are_none(store: DirectoryStore) -> None:
    plan(store, 3, fresh(20, 30))
    ranged(store, 20, 30, [20])
    report = verify(store)
    assert (report.faults, report.pending) == ((), 3)


def test_loads_that_end_meanwhile_are_none(store: DirectoryStore) -> None:
    def go_on(done: int, total: int) -> None:
        if done == total:
            plan(store, 3, fresh(20, 30))
            commit(store, 3, 30, ranged(store, 20, 30, [20]))
            plan(store, 4, fresh(30, 40))
            ranged(store, 30, 40, [30])

    assert verify(store, go_on).faults == ()
    assert verify(store).faults == ()


def test_a_file_that_a_pending_load_writes_anew_may_be_either(store: DirectoryStore) -> None:
    """A loader with --from has died behind it; compaction had taken a record. A file that is missing is a fault."""
    again = PlannedRange(
        topic="t", partition=0, start=Offset(0), end=Offset(5), start_epoch=NO_EPOCH, is_again=True,
        replaces=(range_name("t", 0, Offset(0), Offset(5)),),
    )  # fmt: skip
    plan(store, 3, again)
    fewer_rows(store)
    report = verify(store)
    assert (report.faults, report.pending) == ((), 3)
    lost_file(store)
    (found,) = verify(store).faults
    assert "is missing" in found
