"""A mirror from Apache Kafka as it comes into our cluster, and home again, with a group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.client.group_offsets import CommittedOffset
from quorumlog.spark.mirror.naming import Names
from quorumlog.spark.write.options import AT_LEAST_ONCE
from quorumlog.testing import LocalCluster
from tests.spark.kafka_server import client_of, kafka_server
from tests.spark.mirror_world import contents, mirror_once, offsets_of

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def servers(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_server(tmp_path_factory.mktemp("kafka") / "node") as address:
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
        names = {"topics": "orders", "names": Names.SAME, "delivery": AT_LEAST_ONCE}
        mirror_once(spark, servers, ours.bootstrap_servers, tmp_path / "to", **names)
        there = contents(kafka, "orders")
        assert contents(ours.client, "orders") == there and sum(map(len, there.values())) == 16
        told = {one.name: one.value for one in ours.client.admin.describe_configs("orders").configs}
        assert (told["cleanup.policy"], told["message.timestamp.type"]) == ("compact", "CreateTime")
        assert offsets_of(ours.client, "readers") == {("orders", 0): 2}, "two records lie before offset 4"
        with ours.client.producer() as producer:
            for number in range(6):
                producer.send("orders", None, key=b"new%d" % number, partition=number % 2, timestamp_ms=1_000 + number)
        ours.client.admin.alter_group_offsets("readers", {("orders", 0): CommittedOffset(10)})
        mirror_once(spark, ours.bootstrap_servers, servers, tmp_path / "home", aliases=("b", "a"), **names)
        assert contents(kafka, "orders") == contents(ours.client, "orders")
        passed = offsets_of(kafka, "readers")["orders", 0]
        rest = kafka.consumer(isolation_level="read_committed")
        rest.assign([("orders", 0, passed)], stop="latest")
        assert [record.key for record in rest] == [b"new4"], "one record of the partition was not read in ours"
