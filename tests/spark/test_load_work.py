"""One range of a load in a worker: what becomes of records that the log has lost since the plan."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from quorumlog.client.errors import Unavailable
from quorumlog.ids import NO_EPOCH, Offset
from quorumlog.spark.load.folder import Layout, LoadedRange, Plan, PlannedRange
from quorumlog.spark.load.job import LoadFailed, in_spark
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.load.work import Failed, Task
from quorumlog.spark.read.options import ReadOptions, Subscription
from quorumlog.spark.read.planning import DataLoss, PartitionRange, lost_text
from quorumlog.spark.stream.offset import StreamOffset
from tests.spark.load_world import TOPIC, TOPIC_ID

NEW = PlannedRange(topic=TOPIC, partition=0, start=Offset(0), end=Offset(10), start_epoch=NO_EPOCH)
GONE = "the log starts at 4 now, older records were deleted"


def rows(schema: Any, offsets: list[int]) -> Any:
    columns = {field.name: pa.nulls(len(offsets), field.type) for field in schema}
    columns["offset"] = pa.array(offsets, pa.int64())
    return pa.record_batch(list(columns.values()), schema=schema)


def reads_all(wanted: PartitionRange, options: ReadOptions, schema: Any) -> Iterator[Any]:
    yield rows(schema, list(range(wanted.start, wanted.end)))


def reads_what_is_left(wanted: PartitionRange, options: ReadOptions, schema: Any) -> Iterator[Any]:
    """As the connector does: records below 4 are gone."""
    if options.fail_on_data_loss:
        raise DataLoss(TOPIC, 0, wanted.start, Offset(4), GONE)
    warnings.warn(lost_text(TOPIC, 0, wanted.start, Offset(4), GONE), stacklevel=2)
    yield rows(schema, list(range(4, wanted.end)))


def reads_nothing(wanted: PartitionRange, options: ReadOptions, schema: Any) -> Iterator[Any]:
    raise Unavailable("no leader")
    yield


def task(folder: Path, read: Any, planned: PlannedRange, *, skip_lost: bool = False) -> LoadedRange | Failed:
    return task_of(folder, read, planned, skip_lost=skip_lost)(planned)


def task_of(folder: Path, read: Any, planned: PlannedRange, *, skip_lost: bool = False) -> Task:
    options = ReadOptions(client={}, subscription=Subscription(names=(TOPIC,)), fail_on_data_loss=not skip_lost)
    position = StreamOffset(offsets={(TOPIC, 0): Offset(10)}, topic_ids={TOPIC: TOPIC_ID})
    plan = Plan(
        number=1, load_id="l", token="t", layout=Layout(), position=position, ranges=(planned,), metadata_offsets={}
    )  # fmt: skip
    return Task(plan, DirectoryStore(str(folder)), options, read)


def again(done: LoadedRange) -> PlannedRange:
    paths = tuple(file.path for file in done.files)
    return PlannedRange(
        topic=TOPIC, partition=0, start=Offset(0), end=Offset(10), start_epoch=NO_EPOCH, is_again=True, replaces=paths
    )  # fmt: skip


def test_lost_records_fail_a_range_and_the_message_names_the_way_on(tmp_path: Path) -> None:
    failed = task(tmp_path, reads_what_is_left, NEW)
    assert isinstance(failed, Failed) and failed.where == "orders-0, offsets 0 to 10 (exclusive)"
    assert GONE in failed.why and failed.why.endswith("; --skip-lost loads what is left")
    assert not list(tmp_path.rglob("*.parquet"))


def test_what_is_left_is_loaded_with_a_note(tmp_path: Path) -> None:
    done = task(tmp_path, reads_what_is_left, NEW, skip_lost=True)
    assert isinstance(done, LoadedRange) and [file.rows for file in done.files] == [6]
    assert done.notes == (f"orders-0: 4 offsets from 0 to 4 (exclusive) are not in the log: {GONE}",)


@pytest.mark.parametrize("skip_lost", [False, True])
def test_files_never_lose_what_the_log_has_lost(tmp_path: Path, skip_lost: bool) -> None:
    """A range that was to be loaded again stays as it was."""
    before = task(tmp_path, reads_all, NEW)
    assert isinstance(before, LoadedRange) and before.notes == ()
    after = task(tmp_path, reads_what_is_left, again(before), skip_lost=skip_lost)
    if skip_lost:
        assert isinstance(after, LoadedRange) and after.files == before.files and after.is_kept
        assert "was not loaded again" in after.notes[0]
    else:
        assert isinstance(after, Failed)
    (file,) = tmp_path.rglob("*.parquet")
    assert file.stat().st_size == before.files[0].bytes


def test_an_error_of_the_client_is_a_value(tmp_path: Path) -> None:
    assert task(tmp_path, reads_nothing, NEW) == Failed(NEW.where, "Unavailable: no leader")


class FakeSpark:
    """Whose every job ends with this error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def sparkContext(self) -> FakeSpark:
        return self

    def parallelize(self, *given: Any) -> FakeSpark:
        return self

    def map(self, *given: Any) -> FakeSpark:
        return self

    def collect(self) -> None:
        raise self._error


@pytest.mark.parametrize("kind", [Py4JError, PySparkException])
def test_tasks_that_spark_gives_up_are_a_load_that_failed(tmp_path: Path, kind: type[Exception]) -> None:
    """So that --every goes on behind a worker that was killed."""
    spark = FakeSpark(kind("An error occurred\n: Job aborted\n\tat org.apache.spark"))
    with pytest.raises(LoadFailed, match=r"load 1: Spark gave its tasks up \(.*: Job aborted\). Nothing of it is"):
        in_spark(spark)(task_of(tmp_path, reads_all, NEW), [NEW])
