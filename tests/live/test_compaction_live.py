"""A compacted topic on three real processes: each node's cleaner is a process of its own, and ends with its node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from quorumlog.client.blocking import Cluster
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from tests.live.living_files import bytes_of
from tests.rules import rule

KEYS, ROUNDS = 50, 60
CONFIG = {"log.cleaner.backoff.ms": "200", "log.cleaner.io.buffer.size": "20000"}
TOPIC = {"cleanup.policy": "compact", "internal.segment.bytes": "20000", "min.cleanable.dirty.ratio": "0.01"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


@pytest.fixture
def nodes(root: Path) -> Iterator[LocalCluster]:
    with LocalCluster(root, config=CONFIG) as cluster:
        yield cluster


def fill(client: Cluster) -> dict[bytes | None, bytes | None]:
    client.admin.create_topic("compacted", partitions=1, replication=3, configs=TOPIC)
    last: dict[bytes | None, bytes | None] = {}
    with client.producer() as producer:
        for number in range(ROUNDS):
            for key in range(KEYS):
                last[b"k%d" % key] = b"v%d" % number * 20
                sent = producer.send("compacted", last[b"k%d" % key], key=b"k%d" % key)
            sent.result(10)
    return last


def read(client: Cluster) -> dict[bytes | None, bytes | None]:
    consumer = client.consumer("compacted", start="earliest", stop="latest")
    try:
        records = list(consumer)
    finally:
        consumer.close()
    assert [record.offset for record in records] == sorted(record.offset for record in records)
    return {record.key: record.value for record in records}


def log_bytes(root: Path, topic: str = "compacted") -> list[int]:
    """Of each node's replica of partition 0, whose files come and go meanwhile."""
    return [
        sum(bytes_of(file) for file in directory.glob("*.log"))
        for directory in sorted(root.rglob(f"{topic}-0"))
        if directory.is_dir()
    ]


def cleaners() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if is_cleaner(child)]


def is_cleaner(process: psutil.Process) -> bool:
    try:
        return any("quorumlog_storage.edge.cleaner" in word for word in process.cmdline())
    except psutil.NoSuchProcess:  # it has ended since it was listed
        return False


def test_old_values_go_on_every_node_and_the_last_ones_stay(
    nodes: LocalCluster, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        last = fill(client)
        before = ROUNDS * KEYS * 60
        wait_until(lambda: len(log_bytes(root)) == 3 and max(log_bytes(root)) < before // 3, 30, "compaction")
        assert read(client) == last
        wait_until(lambda: not list(root.rglob("compacted-0/*.swap")), 10, "swaps that have ended")

        def explained() -> bool:
            found = client.admin.explain_compaction("compacted", 0)
            return sorted(found) == [1, 2, 3] and all(one.last_round_ms > 0 for one in found.values())

        wait_until(explained, 20, "a round on each node")
        assert main(["log", "explain-compaction", "compacted-0", "-b", nodes.bootstrap_servers]) == 0
        assert " s ago" in capsys.readouterr().out
        assert main(["log", "explain-compaction", "compacted", "-b", nodes.bootstrap_servers]) == 2
        assert len(list(root.rglob("cleaner-offset-checkpoint"))) == 3
    wait_until(lambda: not cleaners(), 10, "cleaners that rest")


@rule("storage 9.18")
def test_a_cleaner_ends_with_its_node_and_the_next_process_finds_everything(tmp_path: Path) -> None:
    slow = {**CONFIG, "log.cleaner.io.max.bytes.per.second": "10000"}
    with LocalCluster(tmp_path / "cluster", config=slow) as nodes, Cluster(nodes.bootstrap_servers) as client:
        last = fill(client)
        wait_until(lambda: len(cleaners()) == 3, 20, "three cleaners at work")
        before = {process.pid for process in cleaners()}
        nodes.kill(1)
        wait_until(lambda: len(before & {process.pid for process in cleaners()}) == 2, 5, "the end of one cleaner")
        nodes.restart(1)
        nodes.wait_healthy()
        assert read(client) == last


def test_a_throttle_is_taken_away_while_the_nodes_run(tmp_path: Path) -> None:
    """By a real client, as `kafka-configs --entity-type brokers` does it."""
    slow = {**CONFIG, "log.cleaner.io.max.bytes.per.second": "1000"}
    with LocalCluster(tmp_path / "cluster", config=slow) as nodes, Cluster(nodes.bootstrap_servers) as client:
        last = fill(client)
        wait_until(lambda: len(cleaners()) == 3, 20, "three cleaners at work")
        admin = AdminClient({"bootstrap.servers": nodes.bootstrap_servers})

        def alter(broker: str, name: str, value: str) -> None:
            entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ResourceType.BROKER, broker, incremental_configs=[entry])
            admin.incremental_alter_configs([resource])[resource].result(20)

        def described(broker: str, name: str) -> tuple[str, int, bool]:
            resource = ConfigResource(ResourceType.BROKER, broker)
            entry = admin.describe_configs([resource])[resource].result(20)[name]
            return entry.value, entry.source, entry.is_read_only

        with pytest.raises(KafkaException, match="between 1 and 2 in one step"):
            alter("1", "log.cleaner.threads", "9")
        alter("1", "log.cleaner.threads", "2")
        for broker in ("1", "2", "3"):
            alter(broker, "log.cleaner.io.max.bytes.per.second", "1e9")
        before = ROUNDS * KEYS * 60
        wait_until(lambda: len(log_bytes(tmp_path)) == 3 and max(log_bytes(tmp_path)) < before // 3, 30, "compaction")
        assert described("1", "log.cleaner.threads") == ("2", 2, False)
        assert described("2", "log.cleaner.threads") == ("1", 5, False)
        assert described("2", "log.cleaner.io.max.bytes.per.second") == ("1e9", 2, False)
        assert read(client) == last
