"""Fail-over of a mirror and back under load: its driver is killed with kill -9, and leaders of both sides are. Each
record is once on each side as it was, and the group reads each once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from tests.spark.mirror_checker import Found, History, Written, problems
from tests.spark.mirror_world import contents
from tests.spark.test_mirror_command import running

TOPIC, GROUP, PARTITIONS = "orders", "workers", 3
PER_TURN, TURN_S = 20, 0.1  # records that a load sends in one go, and the pause behind
LEAD = 3_000  # records that a load is before the mirror, at most: there is something to copy, and not for hours
HEADERS: tuple[Any, ...] = ((), (("a", b"1"), ("b", None), ("a", b"")))
GIVEN = ("--topics", TOPIC, "--names", "same", "--groups-every", "2s")
OWN = {"retention.ms": "-1", "segment.bytes": "1048576"}
RUN_S = 900.0  # for one step: six nodes and Spark start and recover on few cores
SILENT_POLLS = 25  # of 400 ms, after which a reader takes it that there is no more
Pair = tuple[LocalCluster, LocalCluster]


class Load:
    """Writes to one side until it is stopped. All that it has written is acknowledged then."""

    def __init__(self, home: str, cluster: LocalCluster, first: int) -> None:
        self.home, self.first, self.next = home, first, first
        self.most = LEAD  # records to write
        self.written: list[Written] = []
        self._cluster, self._ends = cluster, threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with Cluster(self._cluster.bootstrap_servers) as client, client.producer() as producer:
                while not self._ends.wait(TURN_S):
                    if len(self.written) >= self.most:
                        continue
                    made = [self._made() for _ in range(PER_TURN)]
                    sent = [producer.send(TOPIC, **_fields(one)) for one in made]
                    for future in sent:
                        future.result(RUN_S)
                    self.written += made
        except BaseException as error:  # `stop` raises it
            self._failed = error

    def _made(self) -> Written:
        number, self.next = self.next, self.next + 1
        key = None if number % 7 == 0 else b"k%d" % number
        record = Found(number, key, b"%d" % number, HEADERS[number % 2], 1_700_000_000_000 + number)
        return Written(self.home, number % PARTITIONS, record)

    def stop(self) -> list[Written]:
        self._ends.set()
        self._thread.join(RUN_S)
        if self._failed is not None:
            raise self._failed
        return self.written


def _fields(one: Written) -> dict[str, Any]:
    record = one.record
    return {
        "value": record.value, "key": record.key, "partition": one.partition, "headers": list(record.headers),
        "timestamp_ms": record.timestamp_ms,
    }  # fmt: skip


def kill_leader(cluster: LocalCluster, partition: int) -> None:
    node = cluster.leader_of(TOPIC, partition)
    cluster.kill(node)
    cluster.restart(node, RUN_S)


def in_log(cluster: LocalCluster) -> dict[int, list[Found]]:
    if all(topic.name != TOPIC for topic in cluster.client.admin.list_topics()):
        return {}
    return {
        partition: [Found(int(value), key, value, tuple(headers), time) for key, value, headers, time in records]
        for partition, records in contents(cluster.client, TOPIC).items()
    }


def read_on(cluster: LocalCluster, most: int) -> list[int]:
    """As a member of the group that then leaves. Fewer than `most` if nothing more comes."""
    found: list[int] = []
    silent = 0
    with cluster.client.consumer([TOPIC], group=GROUP, start="earliest", isolation_level="read_committed") as consumer:
        while len(found) < most and silent < SILENT_POLLS:
            got = [int(record.value or b"") for record in consumer.poll(max_records=most - len(found), timeout_ms=400)]
            found, silent = found + got, 0 if got else silent + 1
        consumer.commit()
    return found


def wait_for_copies(target: LocalCluster, load: Load, process: subprocess.Popen[str], checkpoint: Path) -> None:
    """More than there are now."""
    first = load.first

    def copied() -> int:
        assert process.poll() is None, stderr_of(checkpoint)
        return sum(one.number >= first for records in in_log(target).values() for one in records)

    known = copied()
    load.most = max(load.most, known + LEAD)
    wait_until(lambda: copied() > known, RUN_S, "copies", lambda: stderr_of(checkpoint))


def mirror_under_kills(pair: Pair, checkpoint: Path, load: Load) -> None:
    """The driver is killed in the middle of its work, twice, and leaders of both sides while it works."""
    _, target = pair
    for turn in range(2):
        with running(pair, checkpoint, *GIVEN, "--max-batch", "400") as process:
            wait_for_copies(target, load, process, checkpoint)
            for cluster in pair:
                kill_leader(cluster, turn % PARTITIONS)
            wait_for_copies(target, load, process, checkpoint)
            os.killpg(process.pid, signal.SIGKILL)


def to_the_end(pair: Pair, checkpoint: Path) -> list[dict[str, Any]]:
    for cluster in pair:
        cluster.wait_healthy(RUN_S)
    with running(pair, checkpoint, *GIVEN, "--once") as process:
        said, _ = process.communicate(timeout=2 * RUN_S)
        assert process.returncode == 0, said + stderr_of(checkpoint)
    return [json.loads(line) for line in said.splitlines()]


def stderr_of(checkpoint: Path) -> str:
    return (checkpoint.parent / "stderr").read_text()[-3_000:]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    for folder in ("there", "home"):
        (tmp_path / folder).mkdir()
    with LocalCluster(tmp_path / "a") as a, LocalCluster(tmp_path / "b") as b:
        yield a, b


@pytest.mark.timeout(6 * RUN_S)
def test_fail_over_and_back_under_load_and_kills(pair: Pair, tmp_path: Path) -> None:
    a, b = pair
    there, home = tmp_path / "there" / "c", tmp_path / "home" / "c"
    a.client.admin.create_topic(TOPIC, PARTITIONS, 3, configs=OWN)
    load = Load("a", a, 0)
    try:
        mirror_under_kills(pair, there, load)
    finally:
        written = load.stop()
    read = read_on(a, len(written) // 2)
    to_the_end(pair, there)
    numbers = [one.record.number for one in written]
    assert problems(History(written, {"a": in_log(a), "b": in_log(b)}, numbers)) == []
    settings = {one.name: one.value for one in b.client.admin.describe_configs(TOPIC).configs}
    assert {name: settings[name] for name in OWN} == OWN
    read += read_on(b, len(written) // 4)  # fail over: the group goes on in B, and B is written to
    load = Load("b", b, load.next)
    try:
        mirror_under_kills((b, a), home, load)
    finally:
        written += load.stop()
    to_the_end((b, a), home)
    read += read_on(a, len(written) // 8)  # fail back: the group goes on amid what was written in B
    load = Load("a", a, load.next)
    wait_until(lambda: len(load.written) >= 100, RUN_S, "records")
    written += load.stop()
    to_the_end(pair, there)
    read += read_on(b, len(written))  # and over once more, to the end
    assert problems(History(written, {"a": in_log(a), "b": in_log(b)}, read)) == []
    for cluster in pair:
        assert not cluster.client.admin.list_transactions(states=["Ongoing"])
