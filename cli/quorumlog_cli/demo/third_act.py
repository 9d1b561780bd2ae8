"""The third act: a Spark stream counts the flights and writes exactly once; its driver is killed in the middle.

The driver is started again with the same checkpoint. What a reader of committed records sees is each batch once, and
the last one has the CSV's counts.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from quorumlog.spark.session.java import NoJava, use_java
from quorumlog_cli.demo.driver import Driver
from quorumlog_cli.demo.fault import Moment
from quorumlog_cli.demo.flights import Figures
from quorumlog_cli.demo.steps import Steps
from quorumlog_cli.demo.totals import Total, by_batch, flights_counted, total_problems

if TYPE_CHECKING:
    from quorumlog.client.blocking_consumer import Consumer
    from quorumlog.testing import LocalCluster

TOTALS = "totals-by-carrier"
TOTAL_PARTITIONS = 3
BATCHES = 6
KILL_AT = 1 / 3  # share of the flights counted
LIMIT_S = 300.0  # of the whole act, which takes 30 s where the machine is free


@dataclass(slots=True)
class ThirdAct:
    """figures: of the CSV. column: of the carrier in the CSV. folder: of the checkpoint and of the driver's logs."""

    cluster: LocalCluster
    steps: Steps
    source: str
    figures: Mapping[str, Figures]
    column: int
    folder: Path
    moments: list[Moment] = field(default_factory=list)
    totals: list[Total] = field(default_factory=list)  # as readers of committed records see them
    aborted: int = 0  # records of attempts that were not committed
    started: float = 0.0  # time.monotonic(), in s
    took_s: float = 0.0
    skipped: str = ""  # why
    _is_killed: bool = False

    @property
    def flights(self) -> int:
        return sum(one.flights for one in self.figures.values())

    @property
    def checkpoint(self) -> Path:
        return self.folder / "stream-checkpoint"

    def run(self) -> list[str]:
        """Returns the problems; none after a good run, or where Spark cannot do this. Raises the client's errors."""
        self.skipped = why_not()
        if self.skipped:
            self.steps.say(self.skipped)
            return []
        self.started = time.monotonic()
        shutil.rmtree(self.checkpoint, ignore_errors=True)  # of an earlier demo, whose cluster is gone
        self.cluster.client.admin.create_topic(TOTALS, TOTAL_PARTITIONS, 3, {"min.insync.replicas": "2"})
        arguments = [
            "--bootstrap-servers", self.cluster.bootstrap_servers, "--source", self.source, "--target", TOTALS,
            "--column", str(self.column), "--at-once", str(max(1, self.flights // BATCHES)),
            "--checkpoint", str(self.checkpoint), "--log", str(self.folder / "stream-spark.log"),
        ]  # fmt: skip
        with Driver(arguments, self.folder / "stream.log") as driver:
            problems = self._watch(driver, self.started + LIMIT_S)
        self.took_s = time.monotonic() - self.started
        self.steps.done(f"{self.flights:,} flights counted by a Spark stream", self.took_s)
        return problems + self._compare()

    def story(self) -> list[str]:
        if self.skipped:
            return [self.skipped]
        return [
            f"a stream counted {self.flights:,} flights into {TOTALS} in {self.took_s:.1f} s, exactly once",
            *(f"{moment.when - self.started:.2f} s: {moment.what}" for moment in self.moments),
            f"{len(by_batch(self.totals))} batches that readers of committed records see once each; {self.aborted} "
            "records of attempts that failed are not among them",
        ]

    def _watch(self, driver: Driver, deadline: float) -> list[str]:
        """Until the query has ended, or too late."""
        seen: list[Total] = []
        reader = self.cluster.client.consumer(TOTALS, isolation_level="read_committed")
        with self.steps.progress() as progress, reader as consumer:
            task = progress.add_task("flights counted", total=self.flights, speed="exactly once, by Spark")
            while not driver.has_ended:
                seen += _parts(consumer, 200)
                counted = flights_counted(seen)
                progress.update(task, completed=counted)
                if not self._is_killed and counted >= self.flights * KILL_AT:
                    self._strike(driver, counted)
                if time.monotonic() > deadline:
                    return [f"only {counted:,} of {self.flights:,} flights were counted in {LIMIT_S:.0f} s"]
        problems = driver.problems()
        if not problems and not self._is_killed:
            problems.append("the flights were counted before the driver had been killed")
        return problems

    def _strike(self, driver: Driver, counted: int) -> None:
        self._is_killed = True
        driver.kill()
        self._note(f"kill -9 the stream's driver, {counted:,} flights counted")
        driver.start()
        self._note("the driver is started again, and goes on from its checkpoint")

    def _compare(self) -> list[str]:
        with self.steps.step("totals, read committed, compared with the CSV") as details:
            self.totals = self._read("read_committed")
            self.aborted = len(self._read("read_uncommitted")) - len(self.totals)
            problems = total_problems(self.totals, self._batches_done(), self.figures)
            batches = len(by_batch(self.totals))
            details.append(
                f"{len(problems)} problems" if problems else f"every count is equal; {batches} batches, each once"
            )
        return problems

    def _batches_done(self) -> int:
        """As Spark has noted in the checkpoint."""
        return sum(path.name.isdigit() for path in (self.checkpoint / "commits").glob("*"))

    def _read(self, level: str) -> list[Total]:
        found: list[Total] = []
        with self.cluster.client.consumer(TOTALS, stop="latest", isolation_level=level) as consumer:
            while not consumer.finished:
                found += _parts(consumer, 1_000)
        return found

    def _note(self, what: str) -> None:
        self.moments.append(Moment(time.monotonic(), what))
        self.steps.say(what)


def why_not() -> str:
    """A sentence; "": Spark can do it here."""
    from quorumlog.spark.format.stream_source import HAS_LIMITS

    try:
        use_java()
    except NoJava as error:
        return f"the third act, a stream that is written exactly once, is skipped: {error}"
    if not HAS_LIMITS:
        return "the third act is skipped: below Spark 4.2 a stream is one batch, and its driver has no middle to die in"
    return ""


def _parts(consumer: Consumer, timeout_ms: int) -> list[Total]:
    return [
        Total(record.timestamp_ms, (record.key or b"").decode(), int(record.value or b"0"))
        for record in consumer.poll(timeout_ms=timeout_ms)
    ]
