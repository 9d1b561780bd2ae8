"""Consumers that name a rack read from the replica there, and not from the leader (KIP-392): Kafka's own consumer, that
of librdkafka, and ours.

Where records were read is what each node says that consumers have read of the topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cells_confluent import produce
from cells_java import missing, run
from client_matrix import Place, skip_if
from confluent_kafka import Consumer, TopicPartition

from bench.peers import kafka_tools as kafka
from quorumlog.ids import NodeId
from quorumlog.settings.replicas import RACK_AWARE_SELECTOR
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.probe import ask_page
from quorumlog.testing.waiting import wait_until

VALUES = [f"value-{number}" for number in range(100)]
LEADER, NEAR, AWAY = (NodeId(number) for number in (1, 2, 3))
TIMEOUT_S = 30


class RackedNodes(LocalNodes):
    """Node n is in the rack rn."""

    @classmethod
    def create(cls, *given: Any, **options: Any) -> LocalNodes:
        made = super().create(*given, **options)
        for node in made.layout.nodes:
            with node.config.open("a") as file:
                file.write(f"broker.rack=r{node.node_id}\n")
        return made


class RackedCluster(LocalCluster):
    kind = RackedNodes


@pytest.fixture(scope="module")
def racked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    config = {"replica.selector.class": RACK_AWARE_SELECTOR}
    with RackedCluster(tmp_path_factory.mktemp("near") / "cluster", config=config) as made:
        yield made


@pytest.fixture
def place(racked: LocalCluster, request: pytest.FixtureRequest) -> Place:
    """A topic that node 1 leads, with all values on every replica."""
    name = f"near-{request.node.callspec.id}"
    racked.client.admin.create_topic(name, assignment=[[LEADER, NEAR, AWAY]])
    made = Place(racked.bootstrap_servers, name)
    produce(made, [value.encode() for value in VALUES], {"acks": "all"})
    wait_until(lambda: len(in_sync(racked, name)) == 3 or None, TIMEOUT_S, "all replicas in sync")
    return made


def in_sync(cluster: LocalCluster, topic: str) -> tuple[NodeId, ...]:
    (partition,) = cluster.client.admin.describe_topic(topic).partitions
    return tuple(partition.isr)


def bytes_read(cluster: LocalCluster, topic: str) -> dict[NodeId, int]:
    """By node that consumers have read this topic from."""
    name, found = f'quorumlog_bytes_out_total{{topic="{topic}"}} ', {}
    for node in cluster.nodes.layout.nodes:
        for line in ask_page(node.ports.admin, "/metrics/now").splitlines():
            if line.startswith(name) and float(line.removeprefix(name)):
                found[node.node_id] = int(float(line.removeprefix(name)))
    return found


def by_java(place: Place) -> list[str]:
    said = run(
        kafka.CONSOLE_CONSUMER, place, "--topic", place.topic, "--partition", "0", "--offset", "earliest",
        "--max-messages", str(len(VALUES)), "--timeout-ms", "20000", "--command-property", f"client.rack=r{NEAR}",
    )  # fmt: skip
    return [line for line in said.splitlines() if line.startswith("value-")]


def by_librdkafka(place: Place) -> list[str]:
    consumer = Consumer({"bootstrap.servers": place.servers, "group.id": place.topic, "client.rack": f"r{NEAR}"})
    try:
        consumer.assign([TopicPartition(place.topic, 0, 0)])
        return [(message.value() or b"").decode() for message in consumer.consume(len(VALUES), TIMEOUT_S)]
    finally:
        consumer.close()


@pytest.mark.parametrize("reader", [by_java, by_librdkafka], ids=["java", "librdkafka"])
def test_another_client_reads_from_the_follower(racked: LocalCluster, place: Place, reader: Any) -> None:
    if reader is by_java:
        skip_if(missing())
    assert reader(place) == VALUES
    assert list(bytes_read(racked, place.topic)) == [NEAR]


@pytest.mark.parametrize("transport", ["lane", "grpc"])
def test_ours_reads_from_the_follower_and_goes_on(racked: LocalCluster, place: Place, transport: str) -> None:
    with racked.client.consumer(client_rack=f"r{NEAR}", transport=transport) as consumer:
        consumer.assign([(place.topic, 0, 0)])
        assert taken(consumer, len(VALUES)) == VALUES
        assert list(bytes_read(racked, place.topic)) == [NEAR]
        racked.kill(NEAR)
        produce(place, [b"later"])
        assert taken(consumer, 1) == ["later"]
    racked.restart(NEAR)
    racked.wait_healthy()


def taken(consumer: Any, count: int) -> list[str]:
    found: list[str] = []

    def read() -> bool:
        found.extend(record.value.decode() for record in consumer.poll(timeout_ms=200))
        return len(found) >= count

    wait_until(lambda: read() or None, TIMEOUT_S, f"{count} records")
    return found
