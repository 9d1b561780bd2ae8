"""Real processes whose disk hangs or cannot be read: others lead soon, and nothing acknowledged is lost."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorumlog.ids import NodeId
from quorumlog.testing import LocalCluster
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.topic import LocalTopic
from tests.live.timed import until

STALL_MS = 1_500
SLOW_S = 6.0  # what a loaded machine may take beyond a limit
READ_LIMIT_S = 3.0
LAUNCHER = Path(__file__).with_name("sick_node.py")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    def command(_: LocalNodes, node: NodeFiles) -> list[str]:
        return [sys.executable, "-P", str(LAUNCHER), str(node.folder), "-c", str(node.config)]

    monkeypatch.setattr(LocalNodes, "command", command)
    config = {"log.dir.stall.ms": str(STALL_MS), "broker.session.timeout.ms": "60000"}
    with LocalCluster(tmp_path / "cluster", config=config) as made:
        yield made


@contextmanager
def told(node: NodeFiles, order: str, prefix: Path) -> Iterator[None]:
    (node.folder / order).write_text(str(prefix))
    try:
        yield
    finally:
        (node.folder / order).unlink()


def quorum_leader(cluster: LocalCluster) -> NodeId:
    return cluster.client.admin.describe_quorum().leader_id


def values(topic: LocalTopic) -> list[int]:
    return [int(record.value or b"") for record in topic.records()]


@pytest.mark.timeout(180)
def test_a_node_whose_disk_hangs_leads_nothing_soon_and_ends_without_it(cluster: LocalCluster) -> None:
    """The session is long and its process lives: nobody but the node itself can notice."""
    with cluster.topic("orders") as topic, cluster.client.producer() as producer:
        for number in range(20):
            producer.send(topic.name, str(number)).result(10)
        victim = cluster.leader_of(topic, 0)
        node, process = cluster.nodes.layout.node(victim), cluster.nodes.process(victim)
        assert process is not None
        with told(node, "hang", node.data):
            deliveries = [producer.send(topic.name, str(number)) for number in range(20, 40)]
            until(lambda: cluster.leader_of(topic, 0) not in (victim, -1), STALL_MS / 1000 + SLOW_S, "another leader")
            until(lambda: quorum_leader(cluster) not in (victim, -1), SLOW_S, "another leader of the quorum")
            assert [delivery.result(10).offset for delivery in deliveries] == list(range(20, 40))
            until(lambda: not process.alive, 15.0, "its end")
            log = node.log.read_text()
            assert "has not returned for" in log and f"log.dir.stall.ms={STALL_MS}" in log
            assert "every log directory is offline" in log and "not stopped within" not in log
        cluster.nodes.start([victim])
        cluster.wait_healthy(60)
        assert values(topic) == list(range(40))


@pytest.mark.timeout(120)
def test_a_node_that_was_stopped_does_not_blame_its_disk(cluster: LocalCluster) -> None:
    with cluster.topic("orders") as topic, cluster.client.producer() as producer:
        producer.send(topic.name, "0").result(10)
        victim = cluster.leader_of(topic, 0)
        deliveries = [producer.send(topic.name, str(number)) for number in range(1, 200)]
        cluster.pause(victim)
        time.sleep(3 * STALL_MS / 1000)
        cluster.resume(victim)
        assert [delivery.result(30).offset for delivery in deliveries] == list(range(1, 200))
        cluster.wait_healthy(60)
        assert "has not returned for" not in cluster.nodes.layout.node(victim).log.read_text()
        assert cluster.nodes.offline(victim) == []


@pytest.mark.timeout(180)
def test_a_partition_that_its_leader_cannot_read_is_led_by_another(cluster: LocalCluster) -> None:
    with cluster.topic("orders") as topic:
        topic.produce([str(number) for number in range(200)])
        cluster.nodes.stop()
        cluster.nodes.start()  # the records are not in memory any more
        cluster.wait_healthy(60)
        victim = cluster.leader_of(topic, 0)
        node = cluster.nodes.layout.node(victim)
        with told(node, "unreadable", node.data / f"{topic.name}-0"):
            assert values(topic) == list(range(200))
            until(lambda: cluster.leader_of(topic, 0) not in (victim, -1), READ_LIMIT_S, "another leader")
            (offline,) = cluster.nodes.offline(victim)
            assert f"replica {topic.name}-0 is offline" in offline and "restart the node" in offline
            assert cluster.nodes.readiness(victim).ready, "it goes on with what it can read"
        cluster.nodes.restart(victim)
        cluster.wait_healthy(60)
        assert cluster.nodes.offline(victim) == [] and values(topic) == list(range(200))
