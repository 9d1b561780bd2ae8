"""The pipeline as a run and the matrix use it: nodes or an Apache Kafka, a driver that is started again, a source that
is fed, and what all of it leaves behind at the end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jepsen.guard import Guard, Mark
from jepsen.pipeline.feeder import Feeder
from jepsen.pipeline.history import History, Planned, Record, Shape, Told
from jepsen.pipeline.nodes import Leaders, PipelineNodes, Restarter, pipeline_nodes
from jepsen.pipeline.places import CHECKPOINT, FINISH, Folder
from jepsen.pipeline.spark_processes import SparkDriver
from quorumlog.client.blocking import Cluster
from quorumlog.spark.stream.offset import stream_offset
from quorumlog.testing.waiting import TimedOut, wait_until

MARK = "QL_PIPELINE"  # an environment variable
SOURCE, SINK = "pipeline-source", "pipeline-sink"
PARTITIONS = 3
API_TIMEOUT_MS = 60_000
MOST = 400  # records of a batch
MOST_AHEAD = 10 * MOST  # records of the source that no batch has yet, so that a slow machine ends soon, too
DRIVER_S = 480.0  # for one more batch, on a machine that does much else
START_S = 1_200.0  # for the first one
LOOK_S = 0.1  # between two looks at what the driver has told
CLOSED_S = 30.0  # for markers that are under way at the end
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")


class World:
    """nodes: None with an Apache Kafka."""

    def __init__(
        self, nodes: PipelineNodes | None, servers: str, folder: Path, shape: Shape, per_second: float
    ) -> None:
        self.nodes, self.servers, self.shape = nodes, servers, shape
        self.folder = Folder(folder)
        job = {"servers": servers, "from": SOURCE, "to": SINK, "shape": shape.value, "most": MOST}
        self.driver = SparkDriver(folder, job)
        self.driver.start()  # before the client: Spark's start forks, and gRPC has threads
        self.cluster = Cluster(servers, default_api_timeout_ms=API_TIMEOUT_MS)
        self.leaders = None if nodes is None else Leaders(nodes)
        self.restarter = None if nodes is None else Restarter(nodes)
        self.feeder = Feeder(self.cluster, SOURCE, per_second, lambda: planned_end(folder / CHECKPOINT) + MOST_AHEAD)

    def close(self) -> None:
        """Nothing runs any more but the nodes."""
        try:
            self.driver.close()
        finally:
            self.cluster.close()

    # --- the driver ---

    def told(self) -> list[Told]:
        return [Told(one["batch"], one["rows"], one["replayed"]) for one in self.events("decided")]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [one for one in self.folder.events() if one["event"] == name]

    def count(self, name: str) -> int:
        return len(self.events(name))

    def group(self) -> str:
        """Of the sink, by the query's id, which is the same for all its runs. Raises TimedOut."""
        self.wait_for(lambda: self.count("started") > 0, "the query to start")
        return f"spark/{self.events('started')[-1]['query']}"

    def wait_for(self, condition: Callable[[], bool], what: str, timeout_s: float = DRIVER_S) -> None:
        """Starts the driver again if it ends meanwhile. Raises TimedOut."""

        def holds() -> bool:
            if self.driver.exit_code is not None:
                self.driver.start()
            return condition()

        wait_until(holds, timeout_s, what, self.log_end)

    def log_end(self) -> str:
        events = self.folder.events()[-5:]
        return f"events {json.dumps(events)[-2_000:]}"

    def finish(self) -> bool:
        """Everything that is in the source is written, and the driver ends. False: it does not go on."""
        before, told = self.count("finished"), -1
        self.folder.order(FINISH)
        deadline = 0.0
        while self.count("finished") == before:
            if self.count("decided") != told:
                told, deadline = self.count("decided"), time.monotonic() + DRIVER_S
            if time.monotonic() > deadline:
                return False
            if self.driver.exit_code is not None:
                self.folder.order(FINISH)
                self.driver.start()
            time.sleep(LOOK_S)  # another process goes on, and says so in a file
        return True

    # --- what is left ---

    def history(self, acknowledged: list[tuple[int, int]], is_finished: bool) -> History:
        """All reads. Raises what the client raises."""
        return History(
            shape=self.shape,
            source=self._read(SOURCE, "read_uncommitted"),
            acknowledged=acknowledged,
            planned=planned_of(self.folder.path / CHECKPOINT),
            told=self.told(),
            open=self._open_at_the_end(),
            committed=self._read(SINK, "read_committed"),
            uncommitted=self._read(SINK, "read_uncommitted"),
            is_finished=is_finished,
        )

    def _open_at_the_end(self) -> list[str]:
        try:
            wait_until(lambda: not self.open_transactions(), CLOSED_S, "open transactions to end")
        except TimedOut:
            pass
        return self.open_transactions()

    def open_transactions(self) -> list[str]:
        listed = self.cluster.admin.list_transactions(states=OPEN_STATES)
        return [one.transaction.transactional_id for one in listed]

    def _read(self, topic: str, isolation: str) -> list[Record]:
        found = self.cluster.consumer(topic, start="earliest", stop="latest", isolation_level=isolation)
        return [
            Record(one.partition, one.offset, (one.key or b"").decode(), (one.value or b"").decode()) for one in found
        ]


@contextmanager
def world(root: Path, shape: Shape, per_second: float, *, kafka: str = "", holds: bool = False) -> Iterator[World]:
    """root: takes nodes' files and the run's folder. kafka: its servers, in place of nodes of ours. holds: nodes can be
    held at places. Raises what `pipeline_nodes` raises."""
    folder = root / "run"
    folder.mkdir(parents=True)
    with _guarded(root) as guard:
        if kafka:
            yield from _made(World(None, kafka, folder, shape, per_second), guard)
            return
        with pipeline_nodes(root / "cluster", folder if holds else None) as nodes:
            yield from _made(World(nodes, nodes.layout.bootstrap_servers, folder, shape, per_second), guard)


@contextmanager
def _guarded(root: Path) -> Iterator[Guard]:
    """What is started from now on ends with this process, also by kill -9."""
    mark = Mark(MARK, str(root))
    os.environ.update(mark.environment)
    guard = Guard(mark)
    try:
        yield guard
    finally:
        guard.watch(0)
        guard.close()
        del os.environ[MARK]


def _made(made: World, guard: Guard) -> Iterator[World]:
    try:
        guard.watch(made.driver.group)
        for topic in (SOURCE, SINK):
            made.cluster.admin.create_topic(topic, PARTITIONS, -1)
        yield made
    finally:
        made.close()


def planned_of(checkpoint: Path) -> list[Planned]:
    """What Spark has written down before each batch; see its OffsetSeqLog."""
    return sorted(Planned(number, ends_of(file.read_text())) for number, file in _plans(checkpoint).items())


def planned_end(checkpoint: Path) -> int:
    """Source records of all batches that are planned. A plan that is half written counts for nothing."""
    plans = _plans(checkpoint)
    if not plans:
        return 0
    try:
        return sum(ends_of(plans[max(plans)].read_text()).values())
    except (OSError, ValueError, IndexError):
        return 0


def _plans(checkpoint: Path) -> dict[int, Path]:
    """The file of each batch, by its number."""
    return {int(file.name): file for file in (checkpoint / "offsets").glob("[0-9]*") if file.name.isdigit()}


def ends_of(text: str) -> dict[int, int]:
    """Of the one source of a plan: its last line. Raises ValueError for another form."""
    offset = stream_offset(json.loads(text.splitlines()[-1]))
    return {partition: end for (_, partition), end in offset.offsets.items()}
