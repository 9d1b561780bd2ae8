"""Three nodes take their clients from PLAINTEXT to SASL_SSL by rolling restarts under load, and lose nothing.

First each node gets a second listener, then clients move to it, then the first one goes: the way of
docs/tls-and-users.md.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.node_config import properties_of
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import HOST, NodePorts, PortPicker
from quorumlog.testing.waiting import wait_until
from tests.live.upgrade_load import UpgradeLoad
from tests.security.serving.secured_node import make_user
from tests.security.tls.certificates import authority, leaf

IN_SYNC_S = 40.0
LONGEST_PAUSE_S = 20.0
NAME, PASSWORD = "ada", "a long and random one"


class Moving:
    """A cluster, and a second port of each node for its clients."""

    def __init__(self, folder: Path, picker: PortPicker) -> None:
        self.nodes = LocalNodes.create(folder / "cluster", 3, {}, picker)
        self.more: list[NodePorts] = picker.pick(3)
        ca = authority()
        self._keys, self.trusted = folder / "node.keystore.pem", folder / "ca.pem"
        pair = leaf(ca, "node", dns=("localhost",), ip=(HOST,))
        self._keys.touch(0o600)
        self._keys.write_text(pair.key_pem() + pair.pem)
        self.trusted.write_text(ca.pem)

    @property
    def plain(self) -> str:
        return self.nodes.layout.bootstrap_servers

    @property
    def secure(self) -> str:
        return ",".join(f"{HOST}:{ports.client}" for ports in self.more)

    @property
    def login(self) -> dict[str, Any]:
        return {
            "security_protocol": "SASL_SSL",
            "ssl_cafile": str(self.trusted),
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": NAME,
            "sasl_password": PASSWORD,
        }

    def settings(self, number: int, *, plain: bool) -> dict[str, str]:
        """plain: the listeners that ask nobody who he is are still there."""
        own, more = self.nodes.layout.nodes[number].ports, self.more[number]
        ports = {"SECURE": more.client, "REPLICATION": own.replication, "INTERNAL": own.internal}
        if plain:
            ports |= {"CLIENT": own.client, "GRPC": own.grpc}
        return {
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": "SECURE:SASL_SSL",
            "listener.name.secure.ssl.keystore.location": str(self._keys),
            **({"allow.anonymous.listeners": "CLIENT,GRPC"} if plain else {}),
        }

    def roll(self, load: UpgradeLoad, client: tuple[str, dict[str, Any]], *, plain: bool) -> None:
        for number, node_id in enumerate(self.nodes.ids):
            killed = self.nodes.stop([node_id])
            assert not killed, f"node {node_id} did not stop by itself: {self.nodes.log_tail(node_id)}"
            node = self.nodes.layout.node(node_id)
            changes = self.settings(number, plain=plain)
            node.config.write_text(properties_of(node, self.nodes.layout.nodes, changes))
            self.nodes.start([node_id])
            self.in_sync(load, client)

    def in_sync(self, load: UpgradeLoad, client: tuple[str, dict[str, Any]]) -> None:
        self.nodes.wait_ready(timeout_s=IN_SYNC_S)
        records, changes = len(load.acked), len(load.changed_s)

        def behind() -> list[str]:
            with Cluster(client[0], **client[1]) as one:
                topics = one.admin.list_topics()
            return [
                f"{topic.name}-{one.index}: {one.isr}"
                for topic in topics
                for one in topic.partitions
                if len(one.isr) < 3
            ]

        wait_until(
            lambda: not behind() and len(load.acked) > records + 50 and len(load.changed_s) > changes + 5,
            IN_SYNC_S,
            "all replicas to be in sync, and the load to go on",
            lambda: f"{behind()}, {load.errors[-3:]}, {load.broken}",
        )


@pytest.fixture
def moving(tmp_path: Path) -> Iterator[Moving]:
    picker = PortPicker()
    made = Moving(tmp_path, picker)
    try:
        made.nodes.start()
        made.nodes.wait_ready()
        yield made
    finally:
        made.nodes.stop()
        picker.close()


@pytest.mark.timeout(290)  # six restarts of a node
def test_clients_go_from_plaintext_to_sasl_ssl_and_nothing_is_lost(moving: Moving) -> None:
    before, after = (moving.plain, {}), (moving.secure, moving.login)
    with ExitStack() as of_before:
        load = of_before.enter_context(UpgradeLoad(moving.plain))
        moving.in_sync(load, before)
        moving.roll(load, before, plain=True)
        make_user(moving.plain.split(",")[0], NAME, PASSWORD)
        with UpgradeLoad(moving.secure, "moved", **moving.login) as moved:
            moving.in_sync(moved, after)
            of_before.close()
            moving.roll(moved, after, plain=False)
    for one in (load, moved):
        assert not one.broken and one.longest_pause_s() < LONGEST_PAUSE_S
    for topic, one in (("load", load), ("moved", moved)):
        check_nothing_is_lost_or_doubled(moving, topic, one)
    for node in moving.nodes.layout.nodes:
        with pytest.raises(OSError):
            socket.create_connection((HOST, node.ports.client), timeout=5)
    with pytest.raises((QuorumlogError, RpcError)), Cluster(moving.secure, default_api_timeout_ms=5_000) as stranger:
        stranger.admin.list_topics()


def check_nothing_is_lost_or_doubled(moving: Moving, topic: str, load: UpgradeLoad) -> None:
    assert len(load.acked) > 200
    found: dict[bytes, int] = {}
    with Cluster(moving.secure, **moving.login) as client:
        for record in client.consumer(topic, start="earliest", stop="latest"):
            found[record.value] = found.get(record.value, 0) + 1
        topics = {one.name for one in client.admin.list_topics()}
    assert [value for value in load.acked if value not in found] == []
    assert [value for value in load.acked if found[value] > 1] == [], "the producer is idempotent"
    assert [name for name in load.made if name not in topics] == []
