"""`quorumlog roll` at three nodes of an Apache Kafka: no registration, no metadata offset and no marks are told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import VERSION, Unavailable, get_kafka
from differential.sides import SETTINGS, SMALL_HEAP
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from tests.live.upgrade_load import TOPIC, UpgradeLoad
from tests.spark.kafka_server import client_of

NODES = (1, 2, 3)
WAIT_S = 120.0
LOOK_S = 0.1
REPLICATED = {
    **SETTINGS,
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.replication.factor": 3,
}


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[KafkaPeer]:
    try:
        kafka = get_kafka(version=VERSION)
    except Unavailable as error:
        pytest.skip(str(error))
    made = KafkaPeer(kafka, tmp_path / "nodes", nodes=len(NODES), changes=REPLICATED, options=SMALL_HEAP)
    try:
        made.start()
        yield made
    finally:
        made.close()


@contextmanager
def restarted_upon_a_file(peer: KafkaPeer, folder: Path) -> Iterator[list[int]]:
    """As `systemctl restart --no-block` does: the command returns before anything has happened."""
    over, done = threading.Event(), list[int]()

    def look() -> None:
        while not over.wait(LOOK_S):
            for node_id in NODES:
                if (folder / f"restart-{node_id}").exists():
                    (folder / f"restart-{node_id}").unlink()
                    peer.end(node_id)
                    peer.restart(node_id)
                    done.append(node_id)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


@pytest.mark.timeout(600)
def test_an_apache_kafka_is_rolled_under_load(
    peer: KafkaPeer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = peer.bootstrap_servers
    with client_of(servers) as client:
        wait_until(lambda: len(client.admin.describe_cluster().brokers) == len(NODES), WAIT_S, "all nodes")
        with restarted_upon_a_file(peer, tmp_path) as done, UpgradeLoad(servers) as load:
            code = main(["roll", "-b", servers, "--yes", "--restart-command", f": > {tmp_path}/restart-{{id}}"])
        said = capsys.readouterr().err
        assert code == 0, said
        assert sorted(done) == list(NODES) and "other rolls are not kept away" in said
        topics = client.admin.list_topics()
        assert all(len(part.isr) == 3 for one in topics if one.name == TOPIC for part in one.partitions)
        with client.consumer(TOPIC, start="earliest", stop="latest") as consumer:
            found = [record.value for record in consumer]
    assert not load.broken and len(load.acked) > 100 and set(load.acked) <= set(found)
