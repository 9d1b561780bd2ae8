"""A mirror from Apache Kafka as it comes, of both versions, into our cluster and home again, and from ours into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.peers.kafka_tools import OLDER, VERSION
from quorumlog.client.blocking import Cluster
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.spark.mirror.topics import Names
from quorumlog.testing import LocalCluster
from tests.spark.kafka_server import client_of, kafka_server
from tests.spark.mirror_world import contents, mirror_once, offsets_of

pytestmark = pytest.mark.timeout(900)


LARGE, MOST = 6 << 20, str(10 << 20)  # bytes: of a value above what producers and topics allow by default; of its topic
FROM_OLD = 1_000_000_000_000  # ms since 1970: older than a topic of a Kafka may bound


@pytest.fixture(scope="module", params=[VERSION, OLDER])
def servers(spark: Any, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    with kafka_server(tmp_path_factory.mktemp("kafka") / "node", request.param) as address:
        yield address


@pytest.fixture(scope="module")
def kafka(servers: str) -> Iterator[Cluster]:
    with client_of(servers) as cluster:
        yield cluster


def test_from_a_kafka_and_home(spark: Any, servers: str, kafka: Cluster, tmp_path: Path) -> None:
    settings = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime", "segment.bytes": "1048576"}
    kafka.admin.create_topic("orders", 2, configs=settings)
    with kafka.producer(transactional_id="some") as producer:
        for number in range(20):
            producer.begin()
            headers = [("a", b"1"), ("b", None), ("a", b"")]
            producer.send("orders", b"v", key=b"%d" % number, partition=number % 2, headers=headers).result()
            producer.abort() if number % 5 == 4 else producer.commit()
    kafka.admin.alter_group_offsets("readers", {("orders", 0): CommittedOffset(4)})
    with LocalCluster(tmp_path / "ours", nodes=1) as ours:
        names = {"topics": "orders", "names": Names.SAME}
        mirror_once(spark, servers, ours.bootstrap_servers, tmp_path / "to", **names)
        there = contents(kafka, "orders")
        assert contents(ours.client, "orders") == there and sum(map(len, there.values())) == 16
        told = {one.name: one.value for one in ours.client.admin.describe_configs("orders").configs}
        assert (told["cleanup.policy"], told["message.timestamp.type"]) == ("compact", "CreateTime")
        assert offsets_of(ours.client, "readers") == {("orders", 0): 2}, "two records lie before offset 4"
        with ours.client.producer() as producer:
            sent = [
                producer.send("orders", None, key=b"new%d" % number, partition=number % 2, timestamp_ms=1_000 + number)
                for number in range(6)
            ]
        last_read = sent[2].result().offset
        ours.client.admin.alter_group_offsets("readers", {("orders", 0): CommittedOffset(last_read + 1)})
        mirror_once(spark, ours.bootstrap_servers, servers, tmp_path / "home", aliases=("b", "a"), **names)
        assert contents(kafka, "orders") == contents(ours.client, "orders")
        passed = offsets_of(kafka, "readers")["orders", 0]
        rest = kafka.consumer(isolation_level="read_committed")
        rest.assign([("orders", 0, passed)], stop="latest")
        assert [record.key for record in rest] == [b"new4"], "one record of the partition was not read in ours"


def test_into_a_kafka(spark: Any, servers: str, kafka: Cluster, tmp_path: Path) -> None:
    """Exactly once, as is the default: large, old and empty records as they are; a later partition and topic; a
    group."""
    with LocalCluster(tmp_path / "ours", nodes=1) as ours:
        admin = ours.client.admin
        admin.create_topic("wares", 1, configs={"max.message.bytes": MOST, "cleanup.policy": "compact,delete"})
        with ours.client.producer(max_request_size=int(MOST)) as producer:
            for number, size in enumerate((LARGE, 1_048_500, 0)):
                value = b"x" * size if size else None
                producer.send("wares", value, key=b"%d" % number, partition=0, timestamp_ms=FROM_OLD).result(60)
        admin.alter_group_offsets("buyers", {("wares", 0): CommittedOffset(2)})
        one = {"topics": "wares.*", "aliases": ("ours", "kafka")}
        mirror_once(spark, ours.bootstrap_servers, servers, tmp_path / "c", **one)
        assert contents(kafka, "ours.wares") == contents(ours.client, "wares")
        told = {config.name: config.value for config in kafka.admin.describe_configs("ours.wares").configs}
        assert (told["cleanup.policy"], told["message.timestamp.type"]) == ("compact,delete", "CreateTime")
        assert offsets_of(kafka, "buyers") == {("ours.wares", 0): 2}
        admin.create_partitions("wares", 3)
        admin.create_topic("wares-new", 2)
        with ours.client.producer() as producer:
            for number in range(6):
                producer.send("wares", b"later", key=b"%d" % number, partition=number % 3)
                producer.send("wares-new", b"new", key=b"%d" % number, partition=number % 2)
        mirror_once(spark, ours.bootstrap_servers, servers, tmp_path / "c", **one)
        for topic in ("wares", "wares-new"):
            assert contents(kafka, f"ours.{topic}") == contents(ours.client, topic)
        names = {topic.name for topic in kafka.admin.list_topics()}
        assert names >= {"heartbeats", "ours.checkpoints.internal", "quorumlog-mirrors.internal"}
