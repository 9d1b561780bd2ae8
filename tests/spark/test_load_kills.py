"""Loads that are killed (`kill -9`) between any two of their steps: every reader counts each offset once, at any time.

The simulation (`test_load_protocol.py`) goes through all orders of steps; here the steps, the files and the death are
real.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.spark.load.folder import SUFFIX
from quorumlog.spark.load.job import Request, in_this_process, run_load
from quorumlog.spark.load.store import open_store
from quorumlog.spark.load.verifying import verify
from quorumlog.testing import LocalCluster
from tests.spark.test_load import once, places

RUN_S = 100.0
CLUSTER_RUN_S = 240.0  # two executors start their own Java
ROOT = Path(__file__).resolve().parents[2]
ENDS = (70, 25)  # of the partitions: four ranges of at most 30 offsets, and on two days
DAY_MS = 86_400_000
FILES = 8
# create: 1 is the plan, 2 the commit.
STRIKES = [
    ("create", 1, "before"), ("create", 1, "after"), ("put_file", 1, "before"), ("put_file", 1, "after"),
    ("put_file", 4, "after"), ("put_file", FILES, "after"), ("create", 2, "before"), ("create", 2, "after"),
    ("sweep", 1, "before"),
]  # fmt: skip


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("load") / "cluster", nodes=1) as made:
        made.client.admin.create_topic("orders", len(ENDS), 1)
        fill(made, "orders", ENDS)
        yield made


def fill(cluster: LocalCluster, topic: str, counts: tuple[int, ...]) -> None:
    today_ms = time.time_ns() // 1_000_000
    with cluster.client.producer() as producer:
        for partition, count in enumerate(counts):
            for i in range(count):
                producer.send(topic, b"%d" % i, partition=partition, timestamp_ms=today_ms - i % 2 * DAY_MS)


def start(
    cluster: LocalCluster, place: str, *strike: object, where: str = "process", table: str = ""
) -> subprocess.Popen[bytes]:
    words = [cluster.bootstrap_servers, "orders", place, *map(str, strike), where, table]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.killed_load", *words],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def ended(process: subprocess.Popen[bytes], limit_s: float = RUN_S) -> int:
    """Its exit code. It does not outlive its test."""
    try:
        return process.wait(limit_s)
    finally:
        process.kill()


def wait_for_death(process: subprocess.Popen[bytes], limit_s: float = RUN_S) -> None:
    assert ended(process, limit_s) == -signal.SIGKILL


def seen(spark: Any, folder: Path) -> Counter[tuple[int, int]]:
    return places(spark, folder) if any(folder.rglob(f"*{SUFFIX}")) else Counter()


def load(cluster: LocalCluster, place: str, **wanted: Any) -> None:
    client = {"bootstrap_servers": cluster.bootstrap_servers}
    run_load(Request(topics=("orders",), client=client, **wanted), open_store(place), in_this_process)


def check_whole(spark: Any, place: Path) -> None:
    assert seen(spark, place) == once(*ENDS)
    report = verify(open_store(str(place)))
    assert (report.faults, report.rows, report.pending) == ((), sum(ENDS), 0)


@pytest.mark.parametrize("strike", STRIKES, ids=lambda strike: "-".join(map(str, strike)))
def test_a_killed_load_is_done_again(spark: Any, cluster: LocalCluster, tmp_path: Path, strike: Any) -> None:
    """With other options, of which none counts for what was planned."""
    place = tmp_path / "lake"
    wait_for_death(start(cluster, str(place), *strike))
    assert max(seen(spark, place).values(), default=1) == 1
    if strike[:2] == ("create", 1) and strike[2] == "before":
        load(cluster, str(place))
    else:
        load(cluster, str(place), rows_per_file=7)
        assert len(list(place.rglob(f"*{SUFFIX}"))) == FILES
    check_whole(spark, place)


def test_two_killed_loads_and_two_that_run_at_once(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    place = tmp_path / "lake"
    wait_for_death(start(cluster, str(place), "put_file", 3, "after"))
    wait_for_death(start(cluster, str(place), "put_file", 6, "before"))
    both = [start(cluster, str(place), "none", 0, "after") for _ in range(2)]
    assert [ended(process) for process in both] == [0, 0]
    check_whole(spark, place)


@pytest.mark.timeout(2 * CLUSTER_RUN_S)
def test_a_killed_job_of_spark_is_done_again(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    """The strike is a worker's, in an executor that shares no process with its driver; the driver dies."""
    place = tmp_path / "lake"
    wait_for_death(start(cluster, str(place), "put_file", 4, "after", where="local-cluster[2,1,1024]"), CLUSTER_RUN_S)
    assert max(seen(spark, place).values(), default=1) == 1
    load(cluster, str(place))
    check_whole(spark, place)
