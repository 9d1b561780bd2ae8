"""A driver of Spark is killed (SIGKILL) in the middle of a batch, and its query started again: each record once.

The situations are those of public reports: partitions that come in between, a start by time, other start options.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quorumlog.spark.format.stream_source import HAS_LIMITS
from quorumlog.spark.read.pins import Pins
from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from tests.spark.versions import NEEDS_LIMITS

RUN_S = 240.0
ROOT = Path(__file__).resolve().parents[2]
Row = tuple[str, int, int]  # topic, partition, offset


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    with LocalCluster(tmp_path_factory.mktemp("kills") / "cluster", nodes=1) as made:
        yield made


class Query:
    """A query that is started in a process of its own, again and again."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self._servers = cluster.bootstrap_servers
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def start(self, options: dict[str, str], *, waits_in: int = -1, runs_on: bool = False) -> subprocess.Popen[str]:
        given = json.dumps({"bootstrap.servers": self._servers, **options})
        words = [str(self._folder), given, str(waits_in), "on" if runs_on else "once"]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.query_script", *words], cwd=ROOT, start_new_session=True, text=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.DEVNULL, stderr=(self._folder / "log").open("a"),
        )  # fmt: skip

    def run(self, options: dict[str, str]) -> None:
        """One run of AvailableNow, which ends well."""
        assert self.ends(options) == 0, self.log()[-3_000:]

    def ends(self, options: dict[str, str]) -> int:
        """The exit code of one run of AvailableNow."""
        process = self.start(options)
        try:
            return process.wait(RUN_S)
        finally:
            kill(process)

    def dies_in(self, batch: int, options: dict[str, str]) -> None:
        process = self.start(options, waits_in=batch)
        try:
            wait_until(
                lambda: (self._folder / f"in-{batch}").exists() or process.poll() is not None, RUN_S, "the batch"
            )
            assert process.poll() is None, self.log()[-3_000:]
        finally:
            kill(process)

    def runs_until(
        self, options: dict[str, str], count: int, meanwhile: Callable[[subprocess.Popen[str]], None]
    ) -> None:
        """It runs, and is stopped once it has so many rows in all."""
        (self._folder / "stop").unlink(missing_ok=True)
        process = self.start(options, runs_on=True)
        try:
            meanwhile(process)
            wait_until(lambda: len(self.rows()) >= count or process.poll() is not None, RUN_S, f"{count} rows")
            (self._folder / "stop").touch()
            assert process.wait(RUN_S) == 0, self.log()[-3_000:]
        finally:
            kill(process)

    def rows(self) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for file in self._folder.glob("batch-*.json"):
            found.update((topic, partition, offset) for topic, partition, offset in json.loads(file.read_text()))
        return found

    def log(self) -> str:
        return (self._folder / "log").read_text()


def kill(process: subprocess.Popen[str]) -> None:
    """The driver, Java and Spark's Python processes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def write(cluster: LocalCluster, topic: str, partition: int, count: int, timestamp_ms: int | None = None) -> None:
    with cluster.client.producer() as producer:
        for _ in range(count):
            producer.send(topic, b"v", partition=partition, timestamp_ms=timestamp_ms)


def each_once(topic: str, ends: dict[int, tuple[int, int]]) -> Counter[Row]:
    """ends: by partition, the first offset and the end, exclusive."""
    return Counter((topic, part, offset) for part, (start, end) in ends.items() for offset in range(start, end))


@pytest.mark.skipif(not HAS_LIMITS, reason=NEEDS_LIMITS)
@pytest.mark.timeout(4 * RUN_S)
def test_partitions_are_added_while_a_killed_run_is_down(cluster: LocalCluster, tmp_path: Path) -> None:
    """SPARK-53560."""
    cluster.client.admin.create_topic("grows", 2)
    for partition in (0, 1):
        write(cluster, "grows", partition, 2_000)
    query = Query(cluster, tmp_path / "query")
    options = {"subscribe": "grows", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "1000"}
    query.dies_in(1, options)
    assert len(query.rows()) == 1_000
    cluster.client.admin.create_partitions("grows", 4)
    for partition in (2, 3):
        write(cluster, "grows", partition, 500)
    query.run(options)
    want = each_once("grows", {0: (0, 2_000), 1: (0, 2_000), 2: (0, 500), 3: (0, 500)})
    assert query.rows() == want
    query.run(options)
    assert query.rows() == want


@pytest.mark.timeout(3 * RUN_S)
def test_a_start_by_time_that_some_partitions_do_not_reach(cluster: LocalCluster, tmp_path: Path) -> None:
    """SPARK-35611: what comes between the first plan and the repeated batch is read, also where the start is an end."""
    now_ms = time.time_ns() // 1_000_000
    cluster.client.admin.create_topic("timed", 3)
    write(cluster, "timed", 0, 10, now_ms - 1_000)
    write(cluster, "timed", 1, 10, now_ms - 3_600_000)
    options = {"subscribe": "timed", "startingTimestamp": str(now_ms - 60_000), "pinId": "timed"}
    refused = Query(cluster, tmp_path / "refused")
    assert refused.ends({**options, "pinId": "refused"}) != 0
    assert "no record at or after the time in timed-1, timed-2;" in refused.log()

    query = Query(cluster, tmp_path / "query")
    options["startingOffsetsByTimestampStrategy"] = "latest"
    query.dies_in(0, options)
    for partition in range(3):
        write(cluster, "timed", partition, 100)
    query.run(options)
    assert query.rows() == each_once("timed", {0: (0, 110), 1: (10, 110), 2: (0, 100)})


@pytest.mark.timeout(5 * RUN_S)
def test_other_start_options_change_nothing_once_there_is_a_checkpoint(cluster: LocalCluster, tmp_path: Path) -> None:
    """apache/paimon#8205: neither they nor a pin are read, and no pin is written."""
    cluster.client.admin.create_topic("options", 1)
    write(cluster, "options", 0, 50)
    query = Query(cluster, tmp_path / "query")
    first = {"subscribe": "options", "startingOffsets": "latest", "pinId": "options"}

    def once_begun(process: subprocess.Popen[str]) -> None:
        def begun() -> bool:
            return "options" in [pin.name for pin in Pins(cluster.client).listed()]

        wait_until(lambda: begun() or process.poll() is not None, RUN_S, "the pin of its beginning")
        write(cluster, "options", 0, 1_000)

    query.runs_until(first, 1_000, once_begun)
    write(cluster, "options", 0, 500)
    query.run({"subscribe": "options", "startingOffsets": "earliest"})
    assert query.log().count("UserWarning: the query goes on from its checkpoint: starting options") == 1
    write(cluster, "options", 0, 200)
    assert Pins(cluster.client).delete("options")
    query.run({"subscribe": "options", "startingOffsets": "latest", "pinId": "another"})
    assert query.rows() == each_once("options", {0: (50, 1_750)})
    assert not {"options", "another"} & {pin.name for pin in Pins(cluster.client).listed()}
