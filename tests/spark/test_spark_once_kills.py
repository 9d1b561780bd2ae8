"""The driver of an exactly-once stream is killed (SIGKILL), stopped or fails around a decision, and started again: each
row is there once, and nothing stays open."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until

RUN_S = 240.0
ROWS = 200  # of each batch
ROOT = Path(__file__).resolve().parents[2]
PLACES = [  # place, does the driver end by itself, is the batch decided then
    ("sent", False, False),
    ("before", False, False),
    ("after", False, True),
    ("raises", True, True),
    ("writes", True, False),  # no task tells what it has: the driver looks for it
    ("stops", True, None),  # Spark's own call of abort fails where its thread is interrupted
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    with LocalCluster(tmp_path_factory.mktemp("once") / "cluster", nodes=1) as made:
        yield made


def start(cluster: LocalCluster, folder: Path, name: str, place: str) -> subprocess.Popen[str]:
    job = {"servers": cluster.bootstrap_servers, "from": f"{name}-source", "to": f"{name}-sink"}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.once_script", str(folder), json.dumps(job), place],
        cwd=ROOT, start_new_session=True, text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.DEVNULL, stderr=(folder / "log").open("a"),
    )  # fmt: skip


def kill(process: subprocess.Popen[str]) -> None:
    """The driver, Java and Spark's Python processes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run(cluster: LocalCluster, folder: Path, name: str) -> None:
    process = start(cluster, folder, name, "none")
    try:
        assert process.wait(RUN_S) == 0, (folder / "log").read_text()[-3_000:]
    finally:
        kill(process)


def reach(cluster: LocalCluster, folder: Path, name: str, place: str, ends: bool) -> None:
    """The driver comes to the place, and is dead."""
    process = start(cluster, folder, name, place)
    try:
        if ends:
            process.wait(RUN_S)
        wait_until(lambda: (folder / place).exists() or process.poll() is not None, RUN_S, place)
    finally:
        kill(process)
    assert (folder / place).exists(), (folder / "log").read_text()[-3_000:]


def feed(cluster: LocalCluster, name: str, numbers: range) -> None:
    with cluster.client.producer() as producer:
        for number in numbers:
            producer.send(f"{name}-source", b"%d" % number, key=b"%d" % number)


def values(cluster: LocalCluster, name: str) -> Counter[int]:
    found = cluster.client.consumer(f"{name}-sink", start="earliest", stop="latest", isolation_level="read_committed")
    return Counter(int(record.value or b"-1") for record in found)


def open_transactions(cluster: LocalCluster) -> list[str]:
    listed = cluster.client.admin.list_transactions(states=["Ongoing"])
    return [one.transaction.transactional_id for one in listed]


@pytest.mark.timeout(4 * RUN_S)
@pytest.mark.parametrize(("place", "ends", "is_decided"), PLACES, ids=[place for place, _, _ in PLACES])
def test_a_driver_that_ends_around_a_decision(
    cluster: LocalCluster, tmp_path: Path, place: str, ends: bool, is_decided: bool | None
) -> None:
    for kind in ("source", "sink"):
        cluster.client.admin.create_topic(f"{place}-{kind}", 2)
    feed(cluster, place, range(ROWS))
    reach(cluster, tmp_path, place, place, ends)
    seen = values(cluster, place)
    if is_decided is None:
        assert seen in (Counter(), Counter(range(ROWS))), "torn"
    else:
        assert seen == (Counter(range(ROWS)) if is_decided else Counter())
        assert (tmp_path / f"{place}-aborted").exists() == ends
        assert bool(open_transactions(cluster)) == (not ends and not is_decided)
    feed(cluster, place, range(ROWS, 2 * ROWS))
    run(cluster, tmp_path, place)
    assert values(cluster, place) == Counter(range(2 * ROWS))
    assert open_transactions(cluster) == []
