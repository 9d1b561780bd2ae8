"""`quorumlog log import` of what Kafka wrote, into a cluster of real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.testing.cluster import LocalCluster
from tests.formats.consumed import read_all
from tests.formats.kafka_directory import READ_COMMITTED, READ_UNCOMMITTED, WANT, must_be_what_kafka_read, unpack_kafka
from tests.rules import rule

COMMAND_S = 120.0
TOPICS = sorted({name.split("/")[0].rpartition("-")[0] for name in WANT})
CONFIG = {"auto.create.topics.enable": "false"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("import") / "cluster", config=CONFIG) as made:
        yield made


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_kafka(tmp_path_factory.mktemp("kafka"))


def run(*arguments: str | Path, servers: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quorumlog_cli.main", *map(str, arguments), "-b", servers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == code, (done.args, done.returncode, done.stdout, done.stderr)
    return done


def import_json(cluster: LocalCluster, *arguments: str | Path) -> dict[str, Any]:
    done = run("log", "import", *arguments, "-o", "json", servers=cluster.bootstrap_servers)
    assert "100%" in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def partitions_of(source: Path, topic: str) -> list[Path]:
    return sorted(source.glob(f"{topic}-[0-9]"))


@rule("storage 10.14")
@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_is_read_as_kafka_s_consumer_read_it(topic: str, cluster: LocalCluster, source: Path) -> None:
    said = import_json(cluster, *partitions_of(source, topic), "--topic", topic)
    assert not said["resumed"]
    for number in range(len(partitions_of(source, topic))):
        for isolation in (READ_COMMITTED, READ_UNCOMMITTED):
            rows = read_all(cluster.bootstrap_servers, topic, number, isolation)
            must_be_what_kafka_read(f"{topic}-{number}/{isolation}", rows)
    settings = json.loads(run("config", "get", topic, "-o", "json", servers=cluster.bootstrap_servers).stdout)
    of_topic = {row["key"]: row["value"] for row in settings}
    assert of_topic["retention.paused"] == "true"
    if topic == "append-time":
        assert of_topic["message.timestamp.type"] == "LogAppendTime"  # the source's configs came along
    if topic == "rolled":
        assert of_topic["segment.bytes"] == "1048576" and of_topic["index.interval.bytes"] == "512"
    run("log", "import", "--activate", "--topic", topic, servers=cluster.bootstrap_servers)
    settings = json.loads(run("config", "get", topic, "-o", "json", servers=cluster.bootstrap_servers).stdout)
    assert "retention.paused" not in [row["key"] for row in settings]
