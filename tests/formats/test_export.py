"""`quorumlog log export`: a stopped Kafka takes the directory in the place of its own, and serves every record."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.ids import format_uuid
from quorumlog.testing.cluster import LocalCluster
from quorumlog_storage.directory.offset_files import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    OffsetFile,
    parse_offsets,
)
from quorumlog_storage.directory.partition_metadata import read_topic_id
from quorumlog_storage.edge.disk import RealDisk
from tests.formats.consumed import end_offset, read_all
from tests.formats.kafka_directory import READ_COMMITTED, READ_UNCOMMITTED, must_be_what_kafka_read, unpack_kafka
from tests.formats.kafka_dump import dump, files_below, kafka, must_be_sound
from tests.formats.kafka_node import KafkaNode
from tests.formats.test_import import CONFIG, import_json, partitions_of, run
from tests.rules import rule

TOPICS = ("compacted", "headers", "rolled", "txn")
ISOLATIONS = (READ_COMMITTED, READ_UNCOMMITTED)
# "rebuilding producer state from offset N" is said of every log that Kafka opens, N being where its snapshot ends
REPAIRS = re.compile(r"[Rr]ecover(ing|y of)|[Ss]tray|[Rr]ebuilding in|[Tt]runcat|[Cc]orrupt|unclean shutdown|delet")
OUR_TOPIC = "plain"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """With the topics of the golden directory."""
    source = unpack_kafka(tmp_path_factory.mktemp("kafka"))
    with LocalCluster(tmp_path_factory.mktemp("export") / "cluster", config=CONFIG) as made:
        for topic in (*TOPICS, OUR_TOPIC):
            import_json(made, *partitions_of(source, topic))
        yield made


def partitions(topic: str) -> range:
    return range(2 if topic == "txn" else 1)


@rule("storage 10.14")
def test_a_stopped_kafka_takes_it_and_serves_every_record(cluster: LocalCluster, tmp_path: Path) -> None:
    tool = kafka()
    with KafkaNode(tool, tmp_path / "kafka") as node:
        for topic in TOPICS:
            node.create(topic, len(partitions(topic)), retention_ms="-1", cleanup_policy="delete")
            write_something_else(node, topic)
        node.stop()
        for topic in TOPICS:
            for number in partitions(topic):
                replace(cluster, node.data, topic, number, tmp_path / "out")
        node.start()
        for topic in TOPICS:
            for number in partitions(topic):
                end = end_offset(cluster.bootstrap_servers, topic, number)
                for isolation in ISOLATIONS:
                    rows = read_all(node.servers, topic, number, isolation, end=end)
                    must_be_what_kafka_read(f"{topic}-{number}/{isolation}", rows)
        node.stop()
        said = node.log.read_text()
        assert [line for line in said.splitlines() if REPAIRS.search(line) and is_about(line)] == []


def write_something_else(node: KafkaNode, topic: str) -> None:
    """Records that the export replaces."""
    producer = node.producer(log_level=0)
    for number in range(50):
        producer.produce(topic, value=b"another log %d" % number)
    assert producer.flush(30) == 0


def is_about(line: str) -> bool:
    """Of one of the partitions, or of the log directory."""
    return "Skipping recovery" not in line and (any(f"{topic}-" in line for topic in TOPICS) or "stray" in line.lower())


def replace(cluster: LocalCluster, data: Path, topic: str, number: int, out: Path) -> None:
    """What docs/operations.md tells an operator to do."""
    name = f"{topic}-{number}"
    topic_id = read_topic_id(RealDisk(), str(data / name))
    assert topic_id is not None
    run(
        "log", "export", "--topic", topic, "-p", str(number), "--topic-id", format_uuid(topic_id), "--out", out,
        servers=cluster.bootstrap_servers,
    )  # fmt: skip
    shutil.rmtree(data / name)
    shutil.copytree(out / name, data / name)
    for file in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS):
        if (out / file).exists():
            line = parse_offsets(file, (out / file).read_bytes()).get((topic, number))
            OffsetFile(RealDisk(), str(data / file)).update({(topic, number): line})


def test_the_directory_is_whole_and_stands_alone(cluster: LocalCluster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    described = cluster.client.admin.describe_topic(OUR_TOPIC)
    said = run(
        "log", "export", "--topic-id", format_uuid(described.topic_id), "-p", "0", "--out", out,
        servers=cluster.bootstrap_servers,
    )  # fmt: skip
    assert "ends at offset 500" in said.stderr
    assert read_topic_id(RealDisk(), str(out / "plain-0")) == described.topic_id
    assert sorted(path.name for path in out.iterdir()) == sorted(["plain-0", RECOVERY_POINTS, HIGH_WATERMARKS])
    assert parse_offsets("", (out / RECOVERY_POINTS).read_bytes()) == {("plain", 0): 500}
    assert parse_offsets("", (out / HIGH_WATERMARKS).read_bytes()) == {("plain", 0): 500}
    again = import_json(cluster, out / "plain-0", "--topic", "back", "-c", "retention.ms=-1")
    assert not again["resumed"]
    rows = read_all(cluster.bootstrap_servers, "back", 0, READ_UNCOMMITTED)
    must_be_what_kafka_read(f"plain-0/{READ_UNCOMMITTED}", rows)
    run(
        "log", "export", "--topic", OUR_TOPIC, "-p", "0", "--out", out, servers=cluster.bootstrap_servers, code=6
    )  # nothing is written over
    tool = kafka()
    files = files_below(out)
    must_be_sound(dump(tool, files, "--deep-iteration"), files)
