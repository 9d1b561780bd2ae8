"""The test kit on its own cluster, used as an application's tests use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.testing import LocalCluster
from quorumlog.testing.cuts import cut_links
from quorumlog.testing.nodes import NodeState
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main

AN_APPLICATIONS_TEST = """
def test_a_fresh_topic_is_ready(quorumlog_cluster, quorumlog_topic):
    assert quorumlog_cluster.nodes.ids == [1]
    quorumlog_topic.produce(["a", "b"])
    assert quorumlog_topic.read_all(2) == [b"a", b"b"]


def test_the_next_topic_is_empty(quorumlog_topic):
    assert quorumlog_topic.read_all() == []
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("local") / "cluster") as cluster:
        yield cluster


A_CLIENT_OF_ITS_OWN = """
from confluent_kafka.admin import AdminClient


def test_another_client(quorumlog_cluster, quorumlog_topic):
    admin = AdminClient(quorumlog_cluster.client_options("librdkafka"))
    assert quorumlog_topic.name in admin.list_topics(timeout=20).topics
"""


@pytest.mark.parametrize("protection", [(), ("--quorumlog-tls",)], ids=["plain", "tls"])
def test_the_plugins_fixtures_in_an_application(tmp_path: Path, protection: tuple[str, ...]) -> None:
    """Loaded with -p instead of the entry point, so that it works however the package is installed."""
    (tmp_path / "test_application.py").write_text(AN_APPLICATIONS_TEST + A_CLIENT_OF_ITS_OWN)
    options = [
        "-q",
        "-p",
        "quorumlog.testing.plugin",
        "--quorumlog-nodes",
        "1",
        *protection,
        "--basetemp",
        str(tmp_path / "temporary"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_application.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_acknowledged_records_survive_their_leader(cluster: LocalCluster) -> None:
    with cluster.topic("orders", partitions=2) as topic:
        topic.produce([f"before {n}" for n in range(100)], key="k")
        leader = cluster.leader_of(topic, 0)
        cluster.kill(leader)
        began = time.monotonic()
        cluster.wait_healthy(20)
        print(f"healthy {time.monotonic() - began:.1f} s after the kill")
        assert cluster.leader_of(topic, 0) != leader
        topic.produce(["after"])
        values = topic.read_all(101)
        assert [value for value in values if value != b"after"] == [f"before {n}".encode() for n in range(100)]
        cluster.restart(leader)
        cluster.wait_in_sync(topic)


def test_a_paused_node_does_not_stop_the_others(cluster: LocalCluster) -> None:
    with cluster.topic("paused") as topic:
        leader = cluster.leader_of(topic, 0)
        cluster.pause(leader)
        try:
            cluster.wait_healthy(30)
            topic.produce(["while it sleeps"])
        finally:
            cluster.resume(leader)
        cluster.wait_healthy(30)
        cluster.wait_in_sync(topic)
        assert topic.read_all(1) == [b"while it sleeps"]


def test_a_node_that_is_cut_off_loses_its_leaderships_and_comes_back(cluster: LocalCluster) -> None:
    """Real nodes over both wires: gRPC for the quorum and heartbeats, Kafka's protocol for replication."""
    with cluster.topic("cut", partitions=3) as topic:
        leader = cluster.leader_of(topic, 0)
        others = [node for node in cluster.nodes.ids if node != leader]
        cluster.partition(leader, others)
        try:
            assert cut_links(cluster.nodes.layout) == {(leader, o) for o in others} | {(o, leader) for o in others}
            wait_until(lambda: _leader_by(cluster, topic.name, others[0]) in others, 20, "a leader among the others")
            assert cluster.nodes.state(leader) is NodeState.RUNNING
            topic.produce(["while it is cut off"], key="k")
        finally:
            cluster.heal()
        cluster.wait_healthy(20)
        cluster.wait_in_sync(topic)
        assert topic.read_all(1) == [b"while it is cut off"] and cut_links(cluster.nodes.layout) == set()


def test_top_shows_the_cluster(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-b", cluster.bootstrap_servers]
    with cluster.topic("topped", partitions=2) as topic:
        topic.produce([f"{n}" for n in range(30)])
        assert main(["top", "--once", "--every", "0.2", "-o", "json", *where]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["problems"] == [] and document["not_read"] == {}
        assert {one["node_id"] for one in document["quorum"]["members"]} == {1, 2, 3}
        (found,) = [one for one in document["topics"] if one["topic"] == topic.name]
        assert found["partitions"] == 2 and found["records_per_s"] is not None and found["size_bytes"] > 0
        assert any(one["kind"] == "topic.created" and topic.name in one["subject"] for one in document["events"])
        assert main(["top", "--once", "--every", "0.2", "--filter", topic.name, *where]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("healthy  ") and topic.name in shown and "__consumer_offsets" not in shown


def _leader_by(cluster: LocalCluster, topic: str, node: int) -> int:
    """The leader of the first partition as one node knows it."""
    with Cluster(cluster.nodes.layout.node(node).client_address) as client:
        return min(client.admin.describe_topic(topic).partitions, key=lambda one: one.index).leader_id
