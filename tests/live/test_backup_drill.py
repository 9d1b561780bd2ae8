"""The drill: producers run, a backup is taken, a broker is killed meanwhile, everything is destroyed, restored,
audited."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.client.offsets import LATEST
from quorumlog.testing import LocalCluster
from quorumlog.testing.layout import Layout
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from quorumlog_server.directories.secret import SECRET_BYTES, new_secret

TOPICS = {"latest": 1, "plain": 2, "left": 2, "right": 2, "fleeting": 1}
WRITERS = ("writer-1", "writer-2")
OPEN = "writer-that-hangs"
GROUP = "readers"
KEYS = ("one", "two", "three")
SETTINGS = {
    "fleeting": {"retention.ms": "1"},
    "latest": {"cleanup.policy": "compact", "internal.segment.bytes": "400", "min.cleanable.dirty.ratio": "0.01"},
}
RATE = 400_000  # bytes a second, so that the copy takes a second or two, in which compaction would be busy
WARM_UP = 20  # acknowledged records and transactions before the backup begins
CONFIG = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "100",
    "log.cleaner.backoff.ms": "100",
}
KEEPS_LONG = {**CONFIG, "log.retention.check.interval.ms": "600000", "log.initial.task.delay.ms": "600000"}


@dataclass
class Told:
    """What clients were told, with the monotonic time at which they were."""

    plain: dict[str, float] = field(default_factory=dict)
    committed: dict[str, float] = field(default_factory=dict)
    group: dict[tuple[str, int], int] = field(default_factory=dict)
    latest: dict[str, float] = field(default_factory=dict)  # the first time of each key
    failures: list[BaseException] = field(default_factory=list)


def command(*words: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "quorumlog_cli.main", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        cwd=cwd,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def send_plain(servers: str, told: Told, stop: threading.Event) -> None:
    with Cluster(servers, default_api_timeout_ms=60_000) as client, client.producer() as producer:
        number = 0
        while not stop.is_set():
            value = f"p{number}"
            producer.send("plain", value, partition=number % 2).result(60)
            told.plain[value] = time.monotonic()
            number += 1


def send_latest(servers: str, told: Told, stop: threading.Event) -> None:
    """Each key again and again, so that compaction has something to take all the time."""
    with Cluster(servers, default_api_timeout_ms=60_000) as client, client.producer() as producer:
        number = 0
        while not stop.is_set():
            for key in KEYS:
                producer.send("latest", str(number), key=key, partition=0).result(60)
                told.latest.setdefault(key, time.monotonic())
            number += 1


def send_transactions(servers: str, name: str, told: Told, stop: threading.Event) -> None:
    with (
        Cluster(servers, default_api_timeout_ms=60_000) as client,
        client.producer(transactional_id=name) as producer,
    ):
        number = 0
        while not stop.is_set():
            value = f"{name}:{number}"
            with producer.transaction():
                for topic in ("left", "right"):
                    for partition in range(2):
                        producer.send(topic, value, partition=partition)
            told.committed[value] = time.monotonic()
            number += 1


def read_in_group(servers: str, told: Told, stop: threading.Event) -> None:
    with Cluster(servers, default_api_timeout_ms=60_000) as client:
        consumer = client.consumer("plain", group=GROUP, enable_auto_commit=False)
        while not stop.is_set():
            for record in consumer.poll(timeout_ms=200):
                told.group[record.topic, record.partition] = record.offset + 1
            if told.group:
                consumer.commit()


@contextmanager
def load(servers: str, told: Told) -> Iterator[None]:
    stop = threading.Event()

    def guarded(work: Callable[..., None], *what: Any) -> None:
        try:
            work(servers, *what, told, stop)
        except BaseException as error:
            told.failures.append(error)

    threads = [
        threading.Thread(target=guarded, args=(send_plain,)),
        threading.Thread(target=guarded, args=(send_latest,)),
        threading.Thread(target=guarded, args=(read_in_group,)),
    ]
    threads += [threading.Thread(target=guarded, args=(send_transactions, name)) for name in WRITERS]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(90)
    assert not told.failures, told.failures


@pytest.mark.timeout(300)
def test_destroy_restore_audit(tmp_path: Path) -> None:
    told, folder, restored = Told(), tmp_path / "backup", tmp_path / "restored"
    with LocalCluster(tmp_path / "first", config=KEEPS_LONG) as cluster:
        for name, partitions in TOPICS.items():
            configs = SETTINGS.get(name, {})
            cluster.client.admin.create_topic(name, partitions=partitions, replication=3, configs=configs)
        with cluster.client.producer() as producer:
            producer.send("fleeting", "still here").result(30)
        with cluster.client.producer(transactional_id=OPEN) as hanging:
            hanging.init_transactions()
            hanging.begin()
            hanging.send("left", "never", partition=0).result(30)
            with load(cluster.bootstrap_servers, told):
                wait_until(
                    lambda: (min(len(told.plain), len(told.committed)) > WARM_UP and told.group) or told.failures,
                    60,
                    "load",
                )
                began = time.monotonic()
                backup = threading.Timer(0.3, cluster.kill, [3])
                backup.start()
                said = command(
                    *("backup", "create", str(folder), "--rate", str(RATE)),
                    *("-b", cluster.bootstrap_servers, "-o", "json"),
                    cwd=tmp_path,
                )
                backup.join()
            hanging.abort()
    assert not (tmp_path / "first").exists()
    shown = json.loads(said)
    assert OPEN in [one["transactional_id"] for one in shown["open_transactions"]]
    command("backup", "verify", str(folder), cwd=tmp_path)
    restore_node_by_node(folder, tmp_path / "by-node", told, began)
    words = [word for key, value in CONFIG.items() for word in ("-X", f"{key}={value}")]
    command("restore", "local", str(folder), "--data", str(restored), *words, cwd=tmp_path)
    nodes = LocalNodes.open(restored)
    try:
        nodes.start()
        nodes.wait_ready(timeout_s=60)
        with Cluster(nodes.layout.bootstrap_servers, default_api_timeout_ms=60_000) as client:
            audit(client, told, began)
            status = json.loads(command("status", "--data", str(restored), "-o", "json", cwd=tmp_path))
            assert status["cluster"]["retention_held"]
            time.sleep(2)  # four passes of retention
            assert values(client, "fleeting") == ["still here"]
            command("restore", "release", "--yes", "-b", nodes.layout.bootstrap_servers, cwd=tmp_path)
            wait_until(lambda: not values(client, "fleeting"), 30, "the sweep after the release")
    finally:
        nodes.stop()
        shutil.rmtree(restored)


def restore_node_by_node(folder: Path, root: Path, told: Told, began: float) -> None:
    """As an operator does it on three hosts: one secret, one cluster id, a command for each node."""
    secret = root.with_suffix(".secret")
    secret.write_text(new_secret(os.urandom(SECRET_BYTES)))

    def fill(layout: Layout) -> None:
        for one in layout.nodes:
            where = ["-c", str(one.config), "-t", layout.cluster_id, "--secret-file", str(secret)]
            command("restore", "node", str(folder), *where, "--nodes", "1,2,3", cwd=root.parent)

    picker = PortPicker()
    try:
        nodes = LocalNodes.create(root, 3, CONFIG, picker, fill)
        first, *others = (segments(one.data) for one in nodes.layout.nodes)
        assert len(first) >= sum(TOPICS.values()) and others == [first, first], "replicas differ"
        nodes.start()
        try:
            nodes.wait_ready(timeout_s=60)
            with Cluster(nodes.layout.bootstrap_servers, default_api_timeout_ms=60_000) as client:
                audit(client, told, began)
        finally:
            nodes.stop()
    finally:
        picker.close()
    shutil.rmtree(root)


def segments(data: Path) -> dict[str, bytes]:
    """Of all partitions: three nodes hold three replicas of each."""
    return {str(path.relative_to(data)): path.read_bytes() for path in sorted(data.rglob("*.log"))}


def values(client: Cluster, topic: str, isolation: str = "read_committed") -> list[str]:
    with client.consumer(topic, stop="latest", isolation_level=isolation) as consumer:
        return [(record.value or b"").decode() for record in consumer]


def keys(client: Cluster, topic: str) -> set[str]:
    with client.consumer(topic, stop="latest") as consumer:
        return {(record.key or b"").decode() for record in consumer}


def audit(client: Cluster, told: Told, began: float) -> None:
    plain = Counter(values(client, "plain"))
    assert max(plain.values()) == 1
    assert {value for value, at in told.plain.items() if at < began} <= plain.keys()
    assert {key for key, at in told.latest.items() if at < began} <= keys(client, "latest"), "compaction took a key"
    each = [Counter(values(client, topic)) for topic in ("left", "right")]
    assert each[0] == each[1], "a transaction is in one topic and not in the other"
    assert set(each[0].values()) == {2}, "a transaction is in one partition and not in the other"
    assert {value for value, at in told.committed.items() if at < began} <= each[0].keys()
    assert "never" not in each[0]
    ends = client.admin.list_offsets(
        {(name, index): LATEST for name, count in TOPICS.items() for index in range(count)}
    )
    stable = client.admin.list_offsets(
        {(name, index): LATEST for name, count in TOPICS.items() for index in range(count)},
        isolation_level="read_committed",
    )
    assert {key: one.offset for key, one in stable.items()} == {key: one.offset for key, one in ends.items()}
    committed = client.admin.group_offsets(GROUP)
    assert committed
    for key, one in committed.items():
        assert one.offset <= ends[key].offset
