"""Three nodes of Apache Kafka, of which one is killed while a batch is decided: each batch is there once and whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import VERSION, Unavailable, get_kafka
from differential.sides import SETTINGS, SMALL_HEAP
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ErrorCode
from quorumlog.spark.write.kafka.decisions import driver_id
from quorumlog.spark.write.kafka.delivery import KafkaDelivery, Runs
from quorumlog.spark.write.kafka.steps import Commit, Describe, End, Step, TakeOver, Write
from quorumlog.testing.waiting import wait_until
from tests.spark.decisions.world import PARTITIONS, TIMEOUT_MS, batch, values_of, write
from tests.spark.kafka_server import await_markers, client_of

NODES = 3
WAIT_S = 120.0
REPLICATED = {
    **SETTINGS,
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
}
STRUCK = (TakeOver, Write, Describe, Commit, End)


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    try:
        kafka = get_kafka(version=VERSION)
    except Unavailable as error:
        pytest.skip(str(error))
    made = KafkaPeer(
        kafka, tmp_path_factory.mktemp("three") / "nodes", nodes=NODES, changes=REPLICATED, options=SMALL_HEAP
    )
    try:
        made.start()
        yield made
    finally:
        made.close()


def is_whole(kafka: Cluster, topic: str) -> bool:
    """Every node is there, and in every ISR."""
    topics = [one for one in kafka.admin.list_topics() if one.name == topic or one.name.startswith("__")]
    return all(len(part.isr) == NODES for one in topics for part in one.partitions)


def coordinator_of(kafka: Cluster, transactional_id: str) -> int:
    try:
        return kafka.admin.describe_transaction(transactional_id).coordinator
    except QuorumlogError as error:
        if getattr(error, "code", None) is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return 1


@pytest.mark.timeout(900)
def test_a_node_is_killed_while_a_batch_is_decided(peer: KafkaPeer) -> None:
    """The one that coordinates the driver's transactions."""
    servers, topic = peer.bootstrap_servers, "struck"
    with client_of(servers) as kafka:
        wait_until(lambda: len(kafka.admin.describe_cluster().brokers) == NODES, WAIT_S, "all nodes")
        kafka.admin.create_topic(topic, PARTITIONS)
        again = 0
        for number, kind in enumerate(STRUCK):
            wait_until(lambda: is_whole(kafka, topic), WAIT_S, "all replicas")
            killed: list[int] = []

            def strike(step: Step, kind: type = kind, killed: list[int] = killed) -> None:
                if isinstance(step, kind) and not killed:
                    killed.append(coordinator_of(kafka, driver_id(topic)))
                    peer.kill(killed[0])

            for run, watch in ((f"run-{number}", strike), (f"run-{number}-again", lambda step: None)):
                of = batch(topic, number, run)
                made = KafkaDelivery(
                    {"bootstrap_servers": servers}, transaction_timeout_ms=TIMEOUT_MS, runs=Runs(), watch=watch
                )
                try:
                    attempts = [write(made, of, b"%d" % task, topic, values_of(number, task)) for task in range(2)]
                    made.commit(of, [one for one in attempts if one], {"rows": 8})
                    break
                except QuorumlogError as error:
                    print(f"{kind.__name__}, {run}: {error!r}")
                    again += 1
                finally:
                    made.close()
            else:
                pytest.fail(f"batch {number} did not get through")
            assert killed, f"no {kind.__name__} in a commit"
            peer.restart(killed[0])
        print(f"{again} of {len(STRUCK)} batches needed another start")
        await_markers(kafka)
        found = kafka.consumer(topic, start="earliest", stop="latest", isolation_level="read_committed")
        want = [value for number in range(len(STRUCK)) for task in range(2) for value in values_of(number, task)]
        assert sorted(one.value or b"" for one in found) == sorted(want)
