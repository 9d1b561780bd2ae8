"""Exactly-once writes to an Apache Kafka: what readers of committed records see, and what is left open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.kafka_tools import OLDER, VERSION
from quorumlog.client.blocking import Cluster
from quorumlog.spark.write.kafka.delivery import KafkaDelivery
from quorumlog.spark.write.kafka.listing import list_sinks
from quorumlog.spark.write.kafka.names import prefix_of
from quorumlog.spark.write.kafka.runs import Runs
from tests.spark.decisions.world import PARTITIONS, TIMEOUT_MS, batch, values_of, write
from tests.spark.kafka_server import client_of, kafka_server


@pytest.fixture(scope="module", params=[VERSION, OLDER])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_server(tmp_path_factory.mktemp("kafka") / "node", request.param) as address:
        yield address


@pytest.fixture(scope="module")
def kafka(servers: str) -> Iterator[Cluster]:
    with client_of(servers) as cluster:
        yield cluster


@pytest.fixture
def topic(kafka: Cluster, request: pytest.FixtureRequest) -> str:
    name = request.node.originalname.removeprefix("test_")[:60]
    kafka.admin.create_topic(name, PARTITIONS)
    return name


def delivery(servers: str, *, timeout_ms: int = TIMEOUT_MS, **more: object) -> KafkaDelivery:
    """With a process's memory of its own."""
    return KafkaDelivery(
        {"bootstrap_servers": servers},
        transaction_timeout_ms=timeout_ms,
        runs=Runs(),
        **more,  # type: ignore[arg-type]
    )


def readable(kafka: Cluster, topic: str) -> list[bytes]:
    found = kafka.consumer(topic, start="earliest", stop="latest", isolation_level="read_committed")
    return sorted(one.value or b"" for one in found)


def open_of(kafka: Cluster, group: str) -> list[str]:
    listed = kafka.admin.list_transactions(states=["Ongoing", "PrepareCommit", "PrepareAbort"])
    return [
        one.transaction.transactional_id
        for one in listed
        if one.transaction.transactional_id.startswith(prefix_of(group))
    ]


def test_batches_are_there_once(servers: str, kafka: Cluster, topic: str) -> None:
    made = delivery(servers)
    for number in range(3):
        of = batch(topic, number, "run-0")
        attempts = [write(made, of, b"%d" % task, topic, values_of(number, task)) for task in range(2)]
        write(made, of, b"stray", topic, [b"stray"])
        assert len(open_of(kafka, topic)) == 3
        made.commit(of, [one for one in attempts if one], {"rows": 8})
        assert made.begin(of, b"late") is None, "it is decided"
        assert open_of(kafka, topic) == []
    made.close()
    want = [value for number in range(3) for task in range(2) for value in values_of(number, task)]
    assert readable(kafka, topic) == sorted(want)
    (sink,) = [one for one in list_sinks(kafka) if one.group == topic]
    assert sink.decision is not None
    assert (sink.decision.sequence, sink.decision.ended, sink.open) == (2, True, [])
