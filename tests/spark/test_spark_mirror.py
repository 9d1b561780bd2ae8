"""Mirrors between two of our clusters: records as they are, topics, groups, fail-over and back, circles, lost sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.group_offsets import CommittedOffset
from quorumlog.spark.mirror.job import SameCluster
from quorumlog.spark.mirror.kept import SideMadeAnew
from quorumlog.spark.mirror.naming import Names
from quorumlog.testing import LocalCluster
from tests.spark.mirror_world import contents, mirror, mirror_once, offsets_of, records

WORDS = (None, b"", b"x")
LISTS: list[Any] = [[], [("a", b"1"), ("b", None), ("a", b"2"), ("a", b"")], [("k", b"v")] * 100]


@pytest.fixture(scope="module")
def a(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("mirror") / "a", nodes=1) as made:
        yield made


@pytest.fixture(scope="module")
def b(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("mirror") / "b", nodes=1) as made:
        yield made


def send(cluster: LocalCluster, topic: str, first: int, count: int, partitions: int = 2) -> None:
    with cluster.client.producer() as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, key=b"k%d" % number, partition=number % partitions)


def test_records_settings_partitions_and_groups(
    spark: Any, a: LocalCluster, b: LocalCluster, tmp_path: Path
) -> None:
    """The nine pairs of key and value from null, empty and one byte; headers in their order; times; a second run."""
    admin = a.client.admin
    admin.create_topic("all", 2, configs={"retention.ms": "-1", "message.timestamp.type": "CreateTime"})
    with a.client.producer() as producer:
        for number, (key, value) in enumerate((key, value) for key in WORDS for value in WORDS):
            headers = LISTS[number % 3]
            producer.send("all", value, key=key, partition=number % 2, headers=headers, timestamp_ms=1_000_000 + number)
    admin.alter_group_offsets("readers", {("all", 0): CommittedOffset(2, metadata="m"), ("all", 1): CommittedOffset(4)})
    heard = mirror_once(spark, a.bootstrap_servers, b.bootstrap_servers, tmp_path / "c", topics="all")
    assert contents(b.client, "a.all") == contents(a.client, "all")
    assert sum(batch.rows for batch in heard.batches) == 9
    settings = {one.name: one.value for one in b.client.admin.describe_configs("a.all").configs}
    assert settings["retention.ms"] == "-1" and settings["max.message.bytes"] == str(2**31 - 1)
    assert offsets_of(b.client, "readers") == {("a.all", 0): 2, ("a.all", 1): 4}
    assert {topic.name for topic in b.client.admin.list_topics()} >= {"heartbeats", "a.checkpoints.internal"}
    admin.create_partitions("all", 3)
    admin.create_topic("all-new", 1)
    admin.alter_configs("all", {"retention.ms": None})
    send(a, "all", 100, 6, 3)
    mirror_once(spark, a.bootstrap_servers, b.bootstrap_servers, tmp_path / "c", topics="all.*")
    assert contents(b.client, "a.all") == contents(a.client, "all")
    settings = {one.name: one.value for one in b.client.admin.describe_configs("a.all").configs}
    assert settings["retention.ms"] == "604800000"
    assert len(b.client.admin.describe_topic("a.all-new").partitions) == 1
