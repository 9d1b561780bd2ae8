"""Three nodes go from the cluster's secret in clear to certificates by two rolling restarts under load."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.ids import NodeId
from quorumlog.testing.node_config import properties_of
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from tests.live.upgrade_load import UpgradeLoad
from tests.security.tls.certificates import Pair, authority, leaf

IN_SYNC_S = 40.0
LONGEST_PAUSE_S = 20.0  # without an acknowledged change of metadata, while a node is restarted
API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000000 0000")  # version 0, with an empty client id
INTERNAL = "listener.name.internal."
REPLICATION = "listener.name.replication."


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[LocalNodes]:
    picker = PortPicker()
    made = LocalNodes.create(tmp_path / "cluster", 3, {}, picker)
    try:
        made.start()
        made.wait_ready()
        yield made
    finally:
        made.stop()
        picker.close()


class Issuer:
    """The cluster's authority, and the files of its nodes."""

    def __init__(self, folder: Path, cluster_id: str) -> None:
        self.ca, self._folder, self._cluster_id = authority("Cluster CA"), folder, cluster_id
        folder.mkdir()
        (folder / "ca.pem").write_text(self.ca.pem)

    def settings(self, node_id: NodeId, auth: str) -> dict[str, str]:
        own = self._issue(f"node-{node_id}", self.node(node_id))
        trusted = str(self._folder / "ca.pem")
        of_each = {"ssl.keystore.location": str(own), "ssl.truststore.location": trusted}
        return {
            "listener.security.protocol.map": "INTERNAL:SSL,REPLICATION:SSL",
            "quorumlog.inter.node.auth": auth,
            **{prefix + key: value for prefix in (INTERNAL, REPLICATION) for key, value in of_each.items()},
        }

    def node(self, node_id: NodeId) -> Pair:
        uri = f"quorumlog://{self._cluster_id}/node/{node_id}"
        return leaf(self.ca, f"node-{node_id}", dns=("localhost",), ip=("127.0.0.1",), uri=(uri,))

    def _issue(self, name: str, pair: Pair) -> Path:
        path = self._folder / f"{name}.keystore.pem"
        if not path.exists():
            path.touch(0o600)
            path.write_text(pair.key_pem() + pair.pem)
        return path


def restart(nodes: LocalNodes, node_id: NodeId, changes: dict[str, str]) -> None:
    killed = nodes.stop([node_id])
    assert not killed, f"node {node_id} did not stop by itself: {nodes.log_tail(node_id)}"
    node = nodes.layout.node(node_id)
    node.config.write_text(properties_of(node, nodes.layout.nodes, changes))
    nodes.start([node_id])


def in_sync(nodes: LocalNodes, load: UpgradeLoad) -> None:
    """Wait until every replica is in sync and more was acknowledged: only then the next node is restarted."""
    nodes.wait_ready(timeout_s=IN_SYNC_S)
    records, changes = len(load.acked), len(load.changed_s)

    def behind() -> list[str]:
        with Cluster(nodes.layout.bootstrap_servers) as client:
            topics = client.admin.list_topics()
        return [
            f"{topic.name}-{one.index}: {one.isr}" for topic in topics for one in topic.partitions if len(one.isr) < 3
        ]

    wait_until(
        lambda: not behind() and len(load.acked) > records + 50 and len(load.changed_s) > changes + 5,
        IN_SYNC_S,
        "all replicas to be in sync, and the load to go on",
        lambda: f"{behind()}, {load.errors[-3:]}, {load.broken}",
    )


@pytest.mark.timeout(290)  # six restarts of a node
def test_from_the_secret_to_certificates_nothing_is_lost(nodes: LocalNodes, tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "certificates", nodes.layout.cluster_id)
    servers = nodes.layout.bootstrap_servers
    with UpgradeLoad(servers) as load:
        in_sync(nodes, load)
        ports = [port for node in nodes.layout.nodes for port in (node.ports.internal, node.ports.replication)]
        assert [answers_in_clear(port) for port in ports] == [True] * 6
        for auth, in_clear in (("both", True), ("mtls", False)):
            for node_id in nodes.ids:
                restart(nodes, node_id, issuer.settings(node_id, auth))
                in_sync(nodes, load)
            assert [answers_in_clear(port) for port in ports] == [in_clear] * 6
    assert not load.broken
    check_nothing_is_lost(servers, load)


def answers_in_clear(port: int) -> bool:
    """Whether a node speaks HTTP/2 or Kafka's protocol there without TLS."""
    for hello in (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0", API_VERSIONS):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(hello)
            try:
                if sock.recv(1) == b"\0":  # of the length of a frame, in both
                    return True
            except OSError:
                pass
    return False


def check_nothing_is_lost(servers: str, load: UpgradeLoad) -> None:
    assert len(load.acked) > 500
    with Cluster(servers) as client:
        found: dict[bytes, int] = {}
        for record in client.consumer("load", start="earliest", stop="latest"):
            found[record.value] = found.get(record.value, 0) + 1
        topics = {topic.name for topic in client.admin.list_topics()}
    assert [value for value in load.acked if value not in found] == []
    assert [value for value in load.acked if found[value] > 1] == [], "the producer is idempotent"
    assert [name for name in load.made if name not in topics] == []
    assert load.longest_pause_s() < LONGEST_PAUSE_S
