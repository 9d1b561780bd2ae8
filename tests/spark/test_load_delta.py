"""A load into a table of Delta Lake: its commit is the only one, and is looked up before it is made again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from quorumlog.client.errors import ConfigError
from quorumlog.spark.load import delta
from quorumlog.spark.load.choosing import CannotLoad
from quorumlog.spark.load.driving import drive
from quorumlog.spark.load.job import in_this_process, run_load
from quorumlog.spark.load.looking import Request
from quorumlog.spark.load.names import commit_name
from quorumlog.spark.load.protocol import Ended, newest
from quorumlog.spark.load.records import BY_DAY, DELTA, Commit
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.load.verifying import verify
from quorumlog.testing import LocalCluster
from tests.spark.test_load import once
from tests.spark.test_load_kills import fill, start, wait_for_death

COUNT = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("load") / "cluster", nodes=1) as made:
        made.client.admin.create_topic("orders", 2, 1)
        fill(made, "orders", (COUNT, 20))
        yield made


@pytest.fixture
def wanted(cluster: LocalCluster) -> Request:
    return Request(
        topics=("orders",), client={"bootstrap_servers": cluster.bootstrap_servers}, rows_per_file=20, table=DELTA
    )  # fmt: skip


def load(wanted: Request, folder: Path) -> Any:
    return run_load(wanted, DirectoryStore(str(folder)), in_this_process)[-1]


def rows(folder: Path) -> Counter[tuple[int, int]]:
    table = DeltaTable(folder)
    paths = table.file_uris()
    assert len(set(paths)) == len(paths), "a file is in the table twice"
    found = table.to_pyarrow_table(columns=["partition", "offset", "topic"]).to_pydict()
    assert set(found["topic"]) == {"orders"}
    return Counter(zip(found["partition"], found["offset"], strict=True))


def last_commit(folder: Path) -> Commit:
    _, found = drive(newest(), DirectoryStore(str(folder)))
    assert found is not None
    return found


def test_loads_are_commits_of_the_table(wanted: Request, tmp_path: Path) -> None:
    load(replace(wanted, until="10"), tmp_path)
    load(replace(wanted, until="50"), tmp_path)
    load(wanted, tmp_path)
    table = DeltaTable(tmp_path)
    commit = last_commit(tmp_path)
    assert table.version() == 2 and table.transaction_version(commit.load_id) == 3
    assert rows(tmp_path) == once(COUNT, 20) and verify(DirectoryStore(str(tmp_path))).faults == ()


def test_what_is_loaded_again_is_replaced_in_one_commit(wanted: Request, tmp_path: Path) -> None:
    wanted = replace(wanted, partition_by=BY_DAY)
    load(wanted, tmp_path)
    before = set(DeltaTable(tmp_path).file_uris())
    load(replace(wanted, start="45"), tmp_path)
    table = DeltaTable(tmp_path)
    after = set(table.file_uris())
    assert table.version() == 1 and len(after) == len(before) and len(after - before) == 2  # two days of one range
    assert rows(tmp_path) == once(COUNT, 20) and verify(DirectoryStore(str(tmp_path))).faults == ()
    load(replace(wanted, start="0"), tmp_path)
    assert rows(tmp_path) == once(COUNT, 20)
    assert str(table.schema().to_arrow()).count("dt") == 1


def test_a_commit_file_that_is_missing_is_written_from_the_table(wanted: Request, tmp_path: Path) -> None:
    """P12: the library would store the same transaction twice."""
    load(wanted, tmp_path)
    whole = last_commit(tmp_path)
    (tmp_path / commit_name(1)).unlink()
    outcome = load(wanted, tmp_path)
    assert last_commit(tmp_path) == whole and outcome.number == 1
    assert DeltaTable(tmp_path).version() == 0 and rows(tmp_path) == once(COUNT, 20)


def test_a_death_between_both_commits(cluster: LocalCluster, wanted: Request, tmp_path: Path) -> None:
    """The table has the load, and commit-1.json is not there."""
    wait_for_death(start(cluster, str(tmp_path), "create", 2, "before", table=DELTA))
    assert DeltaTable(tmp_path).version() == 0 and not (tmp_path / commit_name(1)).exists()
    load(wanted, tmp_path)
    assert last_commit(tmp_path).number == 1
    assert DeltaTable(tmp_path).version() == 0 and rows(tmp_path) == once(COUNT, 20)


def test_two_loaders_at_once(wanted: Request, tmp_path: Path) -> None:
    """Both have the plan, and both come to the table at the same time, five times."""
    for number in range(5):
        folder = tmp_path / str(number)
        load(replace(wanted, until="10"), folder)
        meeting = threading.Barrier(2, timeout=60)

        def meet(task: Any, ranges: Any, meeting: threading.Barrier = meeting) -> Any:
            done = list(in_this_process(task, ranges))
            meeting.wait()
            return done

        def die(task: Any, ranges: Any) -> Any:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_load(wanted, DirectoryStore(str(folder)), die)
        failed: list[BaseException] = []

        def run(folder: Path = folder, meet: Any = meet, failed: list[BaseException] = failed) -> None:
            try:
                run_load(wanted, DirectoryStore(str(folder)), meet)
            except BaseException as error:
                failed.append(error)

        both = [threading.Thread(target=run) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert not failed and DeltaTable(folder).version() == 1 and rows(folder) == once(COUNT, 20)


@pytest.mark.parametrize("kind", [DeltaError, OSError])  # OSError: what the library raises where a network fails
def test_an_answer_that_is_unclear_is_looked_up(
    wanted: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    really = delta._attempt
    made: list[int] = []

    def unclear(*given: Any) -> None:
        really(*given)
        made.append(1)
        raise kind("the answer is lost")

    monkeypatch.setattr(delta, "_attempt", unclear)
    load(wanted, tmp_path)
    assert made == [1] and rows(tmp_path) == once(COUNT, 20)


def test_rows_that_something_else_has_moved_are_not_replaced(wanted: Request, tmp_path: Path) -> None:
    load(wanted, tmp_path)
    DeltaTable(tmp_path).optimize.compact()
    assert rows(tmp_path) == once(COUNT, 20)
    with pytest.raises(CannotLoad, match="something else has written its rows into another file"):
        load(replace(wanted, start="0"), tmp_path)
    assert rows(tmp_path) == once(COUNT, 20)
    assert load(wanted, tmp_path).ended is Ended.NOTHING, "what cannot be done must not stay planned"


def test_a_foreign_table_without_files_is_refused(wanted: Request, tmp_path: Path) -> None:
    """The library would add our files to it and compare nothing."""
    DeltaTable.create(tmp_path, pa.schema([("offset", pa.string())]))
    with pytest.raises(CannotLoad, match="is no table of a load"):
        load(wanted, tmp_path)
    assert DeltaTable(tmp_path).version() == 0 and list(tmp_path.iterdir()) == [tmp_path / "_delta_log"]


def test_a_table_that_is_gone_is_not_begun_anew(wanted: Request, tmp_path: Path) -> None:
    """It would have the newest load alone."""
    load(replace(wanted, until="10"), tmp_path)
    (tmp_path / "_delta_log").rename(tmp_path / "_kept")
    with pytest.raises(CannotLoad, match="its table is gone"):
        load(wanted, tmp_path)
    (tmp_path / "_kept").rename(tmp_path / "_delta_log")
    load(wanted, tmp_path)
    assert rows(tmp_path) == once(COUNT, 20)


def test_a_folder_stays_what_it_is(wanted: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(wanted, tmp_path)
    with pytest.raises(ConfigError, match="--table is delta in this folder"):
        load(replace(wanted, table=""), tmp_path)
    load(replace(wanted, table=None), tmp_path)
    monkeypatch.setattr(delta, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs deltalake"):
        load(wanted, tmp_path / "other")


def test_the_columns_are_those_of_the_files(wanted: Request, tmp_path: Path) -> None:
    load(wanted, tmp_path)
    names = [field.name for field in Schema.from_arrow(DeltaTable(tmp_path).schema().to_arrow()).fields]
    assert names == ["key", "value", "partition", "offset", "timestamp", "timestampType", "headers", "topic"]
