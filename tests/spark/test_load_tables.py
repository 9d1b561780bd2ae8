"""A load into a table: its commit is the only one, is looked up before it is made again, and replaces rows."""

from __future__ import annotations

import re
import shutil
import threading
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.spark.load import delta, iceberg, table
from quorumlog.spark.load.choosing import CannotLoad
from quorumlog.spark.load.driving import drive
from quorumlog.spark.load.folder import BY_DAY, DELTA, NO_DAY, Commit, commit_name, plan_name
from quorumlog.spark.load.job import Request, in_this_process, run_load
from quorumlog.spark.load.protocol import MAX_TRIES, Ended, StoreUnclear, newest
from quorumlog.spark.load.store import open_store
from quorumlog.spark.load.table import table_of
from quorumlog.spark.load.verifying import verify
from quorumlog.testing import LocalCluster
from tests.spark.object_server import s3
from tests.spark.table_kinds import KINDS, TableKind
from tests.spark.test_load import once
from tests.spark.test_load_kills import ROOT, fill, start, wait_for_death

__all__ = ["s3"]
COUNT = 60
P12_LOADS, P12_COUNT, P12_RACES = 3, 10_000, 5


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("load") / "cluster", nodes=1) as made:
        made.client.admin.create_topic("orders", 2, 1)
        fill(made, "orders", (COUNT, 20))
        yield made


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> TableKind:
    found: TableKind = request.param
    return found


@pytest.fixture
def wanted(cluster: LocalCluster, kind: TableKind) -> Request:
    return Request(
        topics=("orders",), client={"bootstrap_servers": cluster.bootstrap_servers}, rows_per_file=20, table=kind.name
    )  # fmt: skip


def load(wanted: Request, place: Path | str, runner: Any = in_this_process) -> Any:
    return run_load(wanted, open_store(str(place)), runner)[-1]


def faults(place: Path | str) -> tuple[str, ...]:
    return verify(open_store(str(place))).faults


def last_commit(place: Path | str) -> Commit:
    _, found = drive(newest(), open_store(str(place)))
    assert found is not None
    return found


def test_loads_are_commits_of_the_table(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    for until in ("10", "50", ""):
        load(replace(wanted, until=until), tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and faults(tmp_path) == ()
    first = kind.commits(str(tmp_path))
    assert load(wanted, tmp_path).ended is Ended.NOTHING and kind.commits(str(tmp_path)) == first


def test_what_is_loaded_again_is_replaced_in_one_commit(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    wanted, place = replace(wanted, partition_by=BY_DAY), str(tmp_path)
    load(wanted, tmp_path)
    before = {file.path for file in table_of(kind.name, open_store(place)).files()}
    commits = kind.commits(place)
    load(replace(wanted, start="45"), tmp_path)
    after = {file.path for file in table_of(kind.name, open_store(place)).files()}
    assert len(after) == len(before) and len(after - before) == 2  # two days of one range
    assert kind.commits(place) == commits + 1 and kind.rows(place) == once(COUNT, 20) and faults(tmp_path) == ()
    load(replace(wanted, start="0"), tmp_path)
    assert kind.rows(place) == once(COUNT, 20) and faults(tmp_path) == ()


@pytest.mark.parametrize("partition_by", ["", BY_DAY])
def test_rows_that_something_else_has_moved_are_replaced(
    wanted: Request, kind: TableKind, tmp_path: Path, partition_by: str
) -> None:
    """Its files hold other rows too, which stay."""
    wanted, place = replace(wanted, partition_by=partition_by), str(tmp_path)
    load(wanted, tmp_path)
    kind.rewrite(place)
    commits = kind.commits(place)
    assert kind.rows(place) == once(COUNT, 20) and faults(tmp_path) == ()
    load(replace(wanted, start="45"), tmp_path)
    assert kind.commits(place) == commits + 1 and kind.rows(place) == once(COUNT, 20) and faults(tmp_path) == ()
    load(replace(wanted, start="0"), tmp_path)
    assert kind.rows(place) == once(COUNT, 20) and faults(tmp_path) == ()
    assert load(wanted, tmp_path).ended is Ended.NOTHING


def test_a_rewrite_between_a_plan_and_its_commit_stops_nothing(
    wanted: Request, kind: TableKind, tmp_path: Path
) -> None:
    load(wanted, tmp_path)

    def rewritten_meanwhile(task: Any, ranges: Any) -> Any:
        kind.rewrite(str(tmp_path))
        return list(in_this_process(task, ranges))

    load(replace(wanted, start="25"), tmp_path, rewritten_meanwhile)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and faults(tmp_path) == ()


def test_verify_counts_what_the_table_names(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    load(wanted, tmp_path)
    kind.remove(str(tmp_path), 30)  # of one partition: the other one has 20
    (fault,) = faults(tmp_path)
    assert fault.startswith("orders-0, offsets 20 to 40: the table has 19 rows, and its commit counts 20")
    load(replace(wanted, start="20", until="40"), tmp_path)
    assert faults(tmp_path) == () and kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_verify_sees_rows_that_nobody_has_loaded(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    load(wanted, tmp_path)
    kind.append(str(tmp_path), (1_000, 1_001, None))
    assert faults(tmp_path) == (
        "topic orders: the table has 3 rows that no commit has; look at what has written them",
    )  # fmt: skip


def test_verify_names_a_file_of_the_table_that_is_gone(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    load(wanted, tmp_path)
    kind.rewrite(str(tmp_path))
    lost = table_of(kind.name, open_store(str(tmp_path))).files()[0]
    (tmp_path / lost.path).unlink()
    first, *others = faults(tmp_path)
    assert first.startswith(f"{lost.path}, which the table names, cannot be read (")
    assert others and all("the table has 0 rows" in other for other in others)


def test_what_stands_in_a_file_that_is_gone_is_not_planned_again(
    wanted: Request, kind: TableKind, tmp_path: Path
) -> None:
    """The plan would stand before every later load."""
    load(replace(wanted, until="50"), tmp_path)
    kind.rewrite(str(tmp_path))
    lost = tmp_path / table_of(kind.name, open_store(str(tmp_path))).files()[0].path
    lost.rename(tmp_path / "_kept")
    with pytest.raises(CannotLoad, match=rf"{lost.name}, which may have rows .* and is not there"):
        load(replace(wanted, start="25"), tmp_path)
    load(wanted, tmp_path)
    (tmp_path / "_kept").rename(lost)
    load(replace(wanted, start="25"), tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and faults(tmp_path) == ()


def test_a_log_of_the_table_that_has_holes_is_named(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    """A copy by half, or a file that something has cleaned away."""
    load(replace(wanted, until="10"), tmp_path)
    lost = max((tmp_path / kind.log).glob("*.json" if kind.name == DELTA else "*-m0.avro"))
    whole = lost.read_bytes()
    if kind.name == DELTA:
        lost.write_bytes(whole[:100])
    else:
        lost.unlink()
    for call in (lambda: load(replace(wanted, start="0"), tmp_path), lambda: faults(tmp_path)):
        with pytest.raises(CannotLoad, match=r"its table cannot be opened|what is in the table cannot be told") as told:
            call()
        assert "\n" not in str(told.value)
    lost.write_bytes(whole)
    load(replace(wanted, start="0"), tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and faults(tmp_path) == ()


def test_a_topic_may_have_the_name_of_null(
    cluster: LocalCluster, wanted: Request, kind: TableKind, tmp_path: Path
) -> None:
    """Rows of a topic null would stay beside those that are loaded again."""
    topic, place = NO_DAY, str(tmp_path)
    if topic not in {one.name for one in cluster.client.admin.list_topics()}:
        cluster.client.admin.create_topic(topic, 1, 1)
        send(cluster, topic, 30)
    wanted = replace(wanted, topics=(topic,))
    load(wanted, place)
    assert {file.topic for file in table_of(kind.name, open_store(place)).files()} == {topic}
    load(replace(wanted, start="0"), place)
    assert kind.rows(place) == once(30) and faults(place) == ()


def test_a_load_that_is_under_way_is_no_fault(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    """Its rows may be in the table, and its commit file not yet."""
    load(replace(wanted, until="10"), tmp_path)
    load(wanted, tmp_path)
    (tmp_path / commit_name(2)).unlink()
    assert faults(tmp_path) == ()


def test_a_commit_file_that_is_missing_is_written_from_the_table(
    wanted: Request, kind: TableKind, tmp_path: Path
) -> None:
    """P12: the libraries would store the same load twice."""
    load(wanted, tmp_path)
    whole, commits = last_commit(tmp_path), kind.commits(str(tmp_path))
    (tmp_path / commit_name(1)).unlink()
    outcome = load(wanted, tmp_path)
    assert last_commit(tmp_path) == whole and outcome.number == 1
    assert kind.commits(str(tmp_path)) == commits and kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_a_death_between_both_commits(cluster: LocalCluster, wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    """The table has the load, and commit-1.json is not there."""
    wait_for_death(start(cluster, str(tmp_path), "create", commit_call(kind), "before", table=kind.name))
    commits = kind.commits(str(tmp_path))
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and not (tmp_path / commit_name(1)).exists()
    load(wanted, tmp_path)
    assert last_commit(tmp_path).number == 1
    assert kind.commits(str(tmp_path)) == commits and kind.rows(str(tmp_path)) == once(COUNT, 20)


def commit_call(kind: TableKind) -> int:
    """Which `create` of the store makes commit-1.json: the first one makes the plan."""
    return 2 + kind.creates


def race(wanted: Request, place: Path | str) -> None:
    """Two loaders have the same plan, and come to the table at the same time."""
    meeting = threading.Barrier(2, timeout=60)

    def meet(task: Any, ranges: Any) -> Any:
        done = list(in_this_process(task, ranges))
        meeting.wait()
        return done

    with pytest.raises(KeyboardInterrupt):
        load(wanted, place, dies)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            load(wanted, place, meet)
        except BaseException as error:
            failed.append(error)

    both = [threading.Thread(target=run) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert not failed, failed


def test_p12_as_it_is_written(cluster: LocalCluster, kind: TableKind, wanted: Request, tmp_path: Path) -> None:
    """3 x 10,000 records; the newest commit file removed; two loaders at once, five times. Rows = records."""
    topic, place = f"p12-{kind.name}", str(tmp_path)
    cluster.client.admin.create_topic(topic, 1, 1)
    wanted = replace(wanted, topics=(topic,), rows_per_file=4_000)
    for _ in range(P12_LOADS):
        send(cluster, topic, P12_COUNT)
        load(wanted, place)
    assert kind.rows(place) == once(P12_LOADS * P12_COUNT)
    (tmp_path / commit_name(P12_LOADS)).unlink()
    load(wanted, place)
    assert kind.rows(place) == once(P12_LOADS * P12_COUNT)
    for number in range(1, P12_RACES + 1):
        send(cluster, topic, 1)
        race(wanted, place)
        assert kind.rows(place) == once(P12_LOADS * P12_COUNT + number)
    assert faults(place) == ()


def send(cluster: LocalCluster, topic: str, count: int) -> None:
    with cluster.client.producer() as producer:
        for i in range(count):
            producer.send(topic, b"%d" % i, partition=0)


def test_an_answer_that_is_unclear_is_looked_up(
    wanted: Request, kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_by = type(table_of(kind.name, open_store(str(tmp_path))))
    really = made_by._attempt  # type: ignore[attr-defined]
    made: list[int] = []

    def unclear(*given: Any) -> bool:
        really(*given)
        made.append(1)
        raise OSError("the answer is lost")  # as where a network fails

    monkeypatch.setattr(made_by, "_attempt", unclear)
    with pytest.warns(UserWarning, match="the answer is lost"):
        load(wanted, tmp_path)
    assert made == [1] and kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_a_table_that_never_answers_ends_a_load_by_name(
    wanted: Request, kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_by = type(table_of(kind.name, open_store(str(tmp_path))))

    def never(*given: Any) -> bool:
        raise OSError("no route")

    with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        patched.setattr(made_by, "_attempt", never)
        with pytest.raises(StoreUnclear, match=f"in {MAX_TRIES} tries"):
            load(wanted, tmp_path)
    assert sum("no route" in str(one.message) for one in told) == MAX_TRIES
    load(wanted, tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_a_table_that_is_gone_is_not_begun_anew(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    """It would have the newest load alone."""
    load(replace(wanted, until="10"), tmp_path)
    (tmp_path / kind.log).rename(tmp_path / "_kept")
    with pytest.raises(CannotLoad, match="its table is gone"):
        load(wanted, tmp_path)
    (tmp_path / "_kept").rename(tmp_path / kind.log)
    load(wanted, tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20)


@pytest.mark.parametrize("is_pending", [False, True])
def test_a_table_that_lost_a_load_is_not_added_to(
    wanted: Request, kind: TableKind, tmp_path: Path, is_pending: bool
) -> None:
    """An older state was restored, or another table is there: a load would be committed upon rows that are gone."""
    load(replace(wanted, until="10"), tmp_path)
    shutil.copytree(tmp_path / kind.log, tmp_path / "_older")
    load(replace(wanted, until="30"), tmp_path)
    if is_pending:
        with pytest.raises(KeyboardInterrupt):
            load(wanted, tmp_path, dies)
    (tmp_path / kind.log).rename(tmp_path / "_kept")
    (tmp_path / "_older").rename(tmp_path / kind.log)
    with pytest.raises(CannotLoad, match="load 2 is committed, and its table has load 1 as the newest"):
        load(wanted, tmp_path)
    assert kind.commits(str(tmp_path)) == 1 and (tmp_path / plan_name(3)).exists() is is_pending
    shutil.rmtree(tmp_path / kind.log)
    with pytest.raises(CannotLoad, match="its table is gone, and load 2 is committed"):
        load(wanted, tmp_path)
    (tmp_path / "_kept").rename(tmp_path / kind.log)
    load(wanted, tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and faults(tmp_path) == ()


def test_a_table_of_another_folder_is_not_added_to(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    """Between the plan of the first load and its commit, too."""
    folder, other = tmp_path / "mine", tmp_path / "other"
    load(wanted, other)
    with pytest.raises(KeyboardInterrupt):
        load(wanted, folder, dies)
    shutil.copytree(other / kind.log, folder / kind.log)
    with pytest.raises(CannotLoad):
        load(wanted, folder)
    shutil.rmtree(folder / kind.log)
    load(wanted, folder)
    assert kind.rows(str(folder)) == once(COUNT, 20) and faults(folder) == ()


def dies(task: Any, ranges: Any) -> Any:
    raise KeyboardInterrupt


def test_a_folder_stays_what_it_is(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    load(wanted, tmp_path)
    with pytest.raises(ConfigError, match=f"--table is {kind.name} in this folder"):
        load(replace(wanted, table=""), tmp_path)
    load(replace(wanted, table=None), tmp_path)


def test_a_library_that_is_missing_is_named(
    wanted: Request, kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(wanted, tmp_path)
    monkeypatch.setattr(table, "find_spec", lambda _: None)
    again = replace(wanted, table=None, start="0")
    for call in (lambda: load(wanted, tmp_path / "new"), lambda: load(again, tmp_path), lambda: faults(tmp_path)):
        with pytest.raises(ConfigError, match=r"needs .*: pip install 'quorumlog\[lake\]'"):
            call()


@pytest.mark.parametrize("older", ["0.11.9", "0.9.0rc1", "0.0"])
def test_a_library_that_is_too_old_is_named_before_a_plan(
    wanted: Request, kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: str
) -> None:
    monkeypatch.setattr(table, "version", lambda _: older)
    with pytest.raises(ConfigError, match=rf"needs .* or newer, and {re.escape(older)} is here: pip install --upgrade"):
        load(wanted, tmp_path)
    assert not (tmp_path / plan_name(1)).exists()


def test_the_oldest_libraries_are_those_of_the_extra() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["lake"]
    for name, (major, minor) in (("deltalake", delta.SINCE), ("pyiceberg", iceberg.SINCE)):
        assert f"{name}>={major}.{minor}" in extra


class TestInAnObjectStore:
    """The libraries' commits are conditional there, as the load's own names are."""

    @pytest.fixture
    def place(self, s3: str) -> str:
        return f"{s3}/{uuid4().hex}"

    def test_loads_go_on_again_and_at_once(self, wanted: Request, kind: TableKind, place: str) -> None:
        load(replace(wanted, until="10"), place)
        race(wanted, place)
        assert kind.rows(place) == once(COUNT, 20) and faults(place) == ()
        kind.rewrite(place)
        load(replace(wanted, start="15"), place)
        assert kind.rows(place) == once(COUNT, 20) and faults(place) == ()

    def test_a_death_between_both_commits(
        self, cluster: LocalCluster, wanted: Request, kind: TableKind, place: str
    ) -> None:
        wait_for_death(start(cluster, place, "create", commit_call(kind), "before", table=kind.name))
        commits = kind.commits(place)
        load(wanted, place)
        assert kind.commits(place) == commits and kind.rows(place) == once(COUNT, 20) and faults(place) == ()
