"""The store of a load in a directory, and the Parquet files of one range."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.ids import NO_EPOCH, Offset
from quorumlog.spark.load import parquet
from quorumlog.spark.load.folder import BY_DAY, NO_DAY, SUFFIX, UNDER_WAY, Layout, LoadedRange, Plan, PlannedRange
from quorumlog.spark.load.parquet import COLUMNS, DamagedFile, Footer, RangeFiles, inspect, read_footer
from quorumlog.spark.load.store import SWEPT_AFTER_S, DirectoryStore, NoLinks, StoreRefused, open_store
from quorumlog.spark.load.work import Failed, Task
from quorumlog.spark.read.columns import arrow_schema
from quorumlog.spark.read.options import Shape, parse_read_options
from quorumlog.spark.read.planning import DataLoss
from quorumlog.spark.read.schema import schema_of
from quorumlog.spark.stream.offset import StreamOffset
from tests.spark.load_world import TOPIC_ID

DAY_US = 86_400_000_000
FIRST_DAY_US = 20_000 * DAY_US  # 2024-10-04
SCHEMA = pa.schema([("offset", pa.int64()), ("timestamp", pa.timestamp("us", "UTC")), ("value", pa.binary())])
PLANNED = PlannedRange(topic="orders", partition=3, start=10, end=20, start_epoch=NO_EPOCH)


def batch(offsets: list[int], days: list[int] | None = None) -> Any:
    times = pa.array([FIRST_DAY_US + day * DAY_US for day in days or [0] * len(offsets)]).cast(SCHEMA.types[1])
    return pa.record_batch([pa.array(offsets), times, pa.array([b"v%d" % o for o in offsets])], schema=SCHEMA)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(str(tmp_path / "lake"))


def test_the_second_who_creates_a_name_hears_it(store: DirectoryStore) -> None:
    assert store.read("_quorumlog/plan-1.json") is None and store.list("") == []
    assert store.create("_quorumlog/plan-1.json", b"one")
    assert not store.create("_quorumlog/plan-1.json", b"two")
    assert store.read("_quorumlog/plan-1.json") == b"one"
    assert store.list("_quorumlog/plan") == store.list("") == ["_quorumlog/plan-1.json"]


def test_a_file_takes_its_name_in_one_step(store: DirectoryStore) -> None:
    for number, replaces, done in ((1, False, True), (2, False, False), (3, True, True)):
        with store.scratch(number) as folder:
            (folder / "0").write_bytes(b"%d" % number)
            assert store.put_file("a/b/c.parquet", folder / "0", replaces=replaces) == done
    assert store.read("a/b/c.parquet") == b"3"
    with store.local_copy("a/b/c.parquet") as there, store.local_copy("a/b/d.parquet") as not_there:
        assert there is not None and not_there is None


def test_what_is_under_way_is_no_parquet_and_is_swept(store: DirectoryStore) -> None:
    """A killed loader leaves its folder. One that is only slower than another may be at work in it for a day."""
    kept = []
    for number in (1, 2, 3):
        with store.scratch(number) as folder:
            (folder / "0").write_bytes(b"")
            kept.append((folder, folder.name))
            folder.rename(folder.with_name(f"{folder.name}-left"))
    under_way = Path(store.root) / UNDER_WAY
    assert store.list("") == [] and not list(Path(store.root).rglob(f"*{SUFFIX}"))
    store.sweep(3)
    assert len(list(under_way.iterdir())) == 3
    for folder in under_way.iterdir():
        os.utime(folder, (0, time.time() - SWEPT_AFTER_S - 60))
    store.sweep(2)
    assert [folder.name for folder in under_way.iterdir()] == [f"{kept[2][1]}-left"]


def test_a_store_has_an_address(tmp_path: Path) -> None:
    opened = open_store(f"file://{tmp_path}")
    assert isinstance(opened, DirectoryStore) and opened.root == str(tmp_path)
    with pytest.raises(ConfigError, match="ftp:// is not known"):
        open_store("ftp://host/lake")


def written(store: DirectoryStore, planned: PlannedRange, batches: list[Any], *, by_day: bool) -> dict[str, Any]:
    with store.scratch(1) as folder, RangeFiles(folder, planned, SCHEMA, by_day=by_day) as files:
        for one in batches:
            files.add(one)
        found = files.finish()
        for path, (_, local) in found.items():
            store.put_file(path, local, replaces=True)
    return {path: file for path, (file, _) in found.items()}


def test_a_range_is_one_file_whose_footer_tells_its_offsets(store: DirectoryStore) -> None:
    found = written(store, PLANNED, [batch([10, 12]), batch([19])], by_day=False)
    ((path, file),) = found.items()
    assert path == "topic=orders/p=3/00000000000000000010-00000000000000000020.parquet"
    assert inspect(store, path) == file and file.rows == 3
    with store.local_copy(path) as local:
        assert local is not None and read_footer(local) == Footer(3, 10, 19)
        assert pq.read_table(local).column("offset").to_pylist() == [10, 12, 19]
    assert inspect(store, "topic=orders/p=3/other.parquet") is None


def test_a_file_for_each_day_and_an_empty_one_for_a_day_that_has_gone(store: DirectoryStore) -> None:
    again = PlannedRange(
        topic="orders", partition=3, start=10, end=20, start_epoch=NO_EPOCH, is_again=True,
        replaces=("dt=2024-10-03/topic=orders/p=3/00000000000000000010-00000000000000000020.parquet",),
    )  # fmt: skip
    found = written(store, again, [batch([10, 11, 12], [0, 1, 0]), batch([13], [-20_001])], by_day=True)
    assert {path.partition("/")[0]: file.rows for path, file in found.items()} == {
        "dt=2024-10-03": 0, "dt=2024-10-04": 2, "dt=2024-10-05": 1, "dt=1969-12-31": 1,
    }  # fmt: skip


def test_what_is_strange_under_way_stops_no_sweep(store: DirectoryStore) -> None:
    """As a desktop's .DS_Store, or what an object store's probe left before its folder was copied here."""
    with store.scratch(1) as folder:
        for strange in (".DS_Store", "probe-1"):
            (folder.parent / strange).write_bytes(b"")
        store.sweep(1)
        assert folder.is_dir() and len(list(folder.parent.iterdir())) == 3


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its commits are none, and its records are loaded once more."""
    assert store.create("_quorumlog/commit-00000001.json", b"{}")

    def refuse(path: str) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StoreRefused, match="Input/output error"):
        store.list("_quorumlog/commit-")


@pytest.mark.parametrize(
    ("number", "kind", "told"),
    [
        (errno.EPERM, NoLinks, "makes no hard links here"),
        (errno.EOPNOTSUPP, NoLinks, "makes no hard links here"),
        (errno.EXDEV, NoLinks, "makes no hard links here"),
        (errno.EACCES, StoreRefused, "Permission denied"),
        (errno.ENOSPC, StoreRefused, "No space left"),
    ],
)
def test_what_the_file_system_refuses_is_told_with_its_reason(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception], told: str
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), source, None, target)

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(kind, match=told):
        store.create("_quorumlog/plan-00000001.json", b"{}")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "lake").write_bytes(b"")
    for call in (lambda store: store.list(""), lambda store: store.read("a/b"), lambda store: store.create("a", b"")):
        with pytest.raises(StoreRefused, match="lake"):
            call(DirectoryStore(str(tmp_path / "lake")))


def test_times_that_are_no_day_have_a_folder_of_their_own(store: DirectoryStore) -> None:
    """Readers parse the folders' names as dates: those of year 0 or 10000, and null, would stop them."""
    first, last = -719_162, 2_932_896  # 0001-01-01, 9999-12-31
    us = [first * DAY_US - 1, first * DAY_US, (last + 1) * DAY_US - 1, (last + 1) * DAY_US, -1, 0, None]
    times = pa.array(us, pa.int64()).cast(SCHEMA.types[1])
    rows = pa.record_batch([pa.array(range(10, 17)), times, pa.array([b""] * 7)], schema=SCHEMA)
    found = written(store, PLANNED, [rows], by_day=True)
    assert {path.partition("/")[0].removeprefix("dt="): file.rows for path, file in found.items()} == {
        NO_DAY: 3, "0001-01-01": 1, "9999-12-31": 1, "1969-12-31": 1, "1970-01-01": 1,
    }  # fmt: skip
    table = ds.dataset(store.root, partitioning="hive").to_table(columns=["offset", "dt"]).to_pydict()
    assert {offset for offset, day in zip(table["offset"], table["dt"], strict=True) if day is None} == {10, 13, 16}


def test_more_days_than_files_may_be_open(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan stays until it is done, so a refusal would end all loads into the folder."""
    monkeypatch.setattr(parquet, "MAX_DAYS", 2)
    batches = [batch([10, 11, 12], [0, 1, 2]), batch([13, 14, 15, 16], [3, 4, 0, 2]), batch([17], [4])]
    found = written(store, PLANNED, batches, by_day=True)
    offsets = {}
    for path, file in found.items():
        with store.local_copy(path) as local:
            rows = pq.read_table(local)
        offsets[path.partition("/")[0]] = rows.column("offset").to_pylist()
        assert rows.column("value").to_pylist() == [b"v%d" % one for one in offsets[path.partition("/")[0]]]
        assert inspect(store, path) == file
    assert sorted(offsets.items()) == [
        ("dt=2024-10-04", [10, 15]), ("dt=2024-10-05", [11]), ("dt=2024-10-06", [12, 16]), ("dt=2024-10-07", [13]),
        ("dt=2024-10-08", [14, 17]),
    ]  # fmt: skip


def test_a_row_of_a_further_day_that_fails_leaves_nothing_open(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "MAX_DAYS", 1)
    with pytest.raises(KeyError), store.scratch(1) as folder:
        with RangeFiles(folder, PLANNED, SCHEMA, by_day=True) as files:
            files.add(batch([10, 11], [0, 1]))
            raise KeyError
    assert list((Path(store.root) / UNDER_WAY).iterdir()) == []


def test_row_groups_are_bounded_by_rows_and_by_bytes(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROW_GROUP_ROWS", "ROW_GROUP_BYTES"):
        with monkeypatch.context() as patched:
            patched.setattr(parquet, name, 2)
            (path,) = written(store, PLANNED, [batch([10, 11]), batch([12]), batch([13])], by_day=False)
        with store.local_copy(path) as local:
            assert pq.read_metadata(local).num_row_groups > 1 and pq.read_table(local).num_rows == 4


def lose(*given: Any) -> Any:
    raise DataLoss("orders", 3, 10, 15, "the log starts at 15 now")


def one_row(*given: Any) -> Any:
    row = {"partition": 3, "offset": 12, "timestamp": 0, "timestampType": 0}
    yield pa.RecordBatch.from_pylist([row], schema=arrow_schema(schema_of(Shape(columns=COLUMNS))))


def task_of(store: DirectoryStore, by: str = "") -> Task:
    """Of PLANNED; its records are gone."""
    position = StreamOffset(offsets={("orders", 3): Offset(20)}, topic_ids={"orders": TOPIC_ID})
    plan = Plan(
        number=1, load_id="l", token="t", layout=Layout(partition_by=by), position=position, ranges=(PLANNED,),
        metadata_offsets={},
    )  # fmt: skip
    options = parse_read_options({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"})
    return Task(plan, store, options, read=lose)


def test_a_file_that_is_there_needs_no_records_that_are_gone(store: DirectoryStore) -> None:
    """All was written, and the loader died before its commit; then retention took the records."""
    for by_day, is_kept in ((BY_DAY, False), ("", True)):
        task = task_of(store, by_day)
        assert isinstance(task(PLANNED), Failed)
        done = replace(task, read=one_row)(PLANNED)
        found = task(PLANNED)
        assert isinstance(done, LoadedRange) and isinstance(found, LoadedRange) == is_kept
        if isinstance(found, LoadedRange):
            assert found.files == done.files and "the log starts at 15 now" in found.notes[0]


def test_a_damaged_file_under_a_planned_name_is_told(store: DirectoryStore) -> None:
    """It is not written over, so it must be moved away, which the message says."""
    assert store.create(PLANNED.name, b"no parquet")
    with pytest.raises(DamagedFile, match=r"0020\.parquet is no Parquet file any more .*: move it away"):
        inspect(store, PLANNED.name)
    for read in (one_row, lose):
        found = replace(task_of(store), read=read)(PLANNED)
        assert isinstance(found, Failed) and "move it away" in found.why
