"""One range of a load, in a Spark worker: reads it, writes its files aside, and gives them their names.

An error that the user can understand is a value: Spark would wrap it into a page of Java.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from quorumlog.client.errors import QuorumlogError
from quorumlog.spark.load.driving import drive
from quorumlog.spark.load.folder import LoadedFile, LoadedRange, Plan, PlannedRange
from quorumlog.spark.load.parquet import COLUMNS, RangeFiles, file_schema, inspect
from quorumlog.spark.load.protocol import publish
from quorumlog.spark.load.store import Store
from quorumlog.spark.read.options import ReadOptions, Shape
from quorumlog.spark.read.planning import SKIP_HINT, DataLoss, PartitionRange
from quorumlog.spark.read.reading import read_range

Reader = Callable[[PartitionRange, ReadOptions, Any], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Failed:
    """why: for the user."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is given beside its range. It is pickled."""

    plan: Plan
    store: Store
    options: ReadOptions
    read: Reader = read_range

    def __call__(self, planned: PlannedRange) -> LoadedRange | Failed:
        try:
            return self._try(planned)
        except (QuorumlogError, OSError) as error:
            return Failed(planned.where, f"{type(error).__name__}: {error}")

    def _try(self, planned: PlannedRange) -> LoadedRange | Failed:
        try:
            return load_range(self, planned)
        except DataLoss as loss:
            if planned.is_again and not self.options.fail_on_data_loss:
                return self._kept(planned, str(loss))
            if (file := self._written(planned)) is not None:
                why = str(loss).replace(f"; {SKIP_HINT}", "")
                return _loaded(planned, (file,), (f"{planned.where}: kept as an earlier run has written it: {why}",))
            return Failed(planned.where, str(loss).replace(SKIP_HINT, "--skip-lost loads what is left"))

    def _written(self, planned: PlannedRange) -> LoadedFile | None:
        """The file of an earlier try of this plan, which was whole when it got its name. Of days one may lack some."""
        if planned.is_written_over or self.plan.layout.by_day:
            return None
        return inspect(self.store, planned.name)

    def _kept(self, planned: PlannedRange, why: str) -> LoadedRange:
        """A range that was to be loaded again, and of which the log has lost records: its files stay as they are."""
        files = tuple(file for path in planned.replaces if (file := inspect(self.store, path)) is not None)
        kept = _loaded(planned, files, (f"{planned.where} was not loaded again: {why}",))
        return replace(kept, is_kept=True)


def load_range(task: Task, planned: PlannedRange) -> LoadedRange:
    """Raises QuorumlogError, OSError."""
    schema = file_schema()
    options = replace(task.options, shape=Shape(columns=COLUMNS))
    if planned.is_again:
        options = replace(options, fail_on_data_loss=True)  # never take records away from files
    with (
        warnings.catch_warnings(record=True) as told,
        task.store.scratch(task.plan.number) as folder,
        RangeFiles(folder, planned, schema, by_day=task.plan.layout.by_day) as files,
    ):
        warnings.simplefilter("always")
        for batch in task.read(task.plan.part(planned), options, schema):
            files.add(batch)
        published = drive(publish(planned, files.finish(), task.plan.number), task.store)
    return _loaded(
        planned, published, tuple(str(one.message) for one in told if "are not in the log" in str(one.message))
    )


def _loaded(planned: PlannedRange, files: tuple[LoadedFile, ...], notes: tuple[str, ...]) -> LoadedRange:
    return LoadedRange(
        topic=planned.topic,
        partition=planned.partition,
        start=planned.start,
        end=planned.end,
        files=files,
        notes=notes,
    )
