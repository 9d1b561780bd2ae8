"""A local cluster whose voters are in the metadata log gets other ports, and finds itself there."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.settings.node import MOVED_VOTERS
from quorumlog.testing.layout import read_layout
from quorumlog.testing.ports import HOST, STEP, NodePorts
from quorumlog.testing.waiting import wait_until
from tests.live.free_ports import free_port
from tests.live.person import Person

pytestmark = pytest.mark.timeout(240)


def internal_ports(person: Person) -> list[int]:
    """Of the voters, as the metadata log names them."""
    with Cluster(read_layout(person.root).bootstrap_servers) as cluster:
        said = cluster.admin.describe_quorum()
    assert said.kraft_version == 1
    return [endpoint.port for node in said.nodes for endpoint in node.endpoints]


def test_all_voters_move_at_once(tmp_path: Path) -> None:
    person = Person(tmp_path / "p")
    person.folder.mkdir()
    try:
        person.types("up", "-d")
        person.types("produce", "kept", stdin="before\n")
        raised = lambda: person.does("feature", "upgrade", "kraft.version=1").returncode == 0  # noqa: E731
        wait_until(raised, 20.0, "all voters to tell the leader about themselves")
        before = read_layout(person.root)
        assert internal_ports(person) == [node.ports.internal for node in before.nodes]
        person.types("down")

        first = free_port(len(before.nodes))
        with socket.create_server((HOST, before.nodes[1].ports.internal)):
            assert "--port" in person.hears("up", "-d", want=6)
            person.types("up", "-d", "--port", str(first))
            moved = [NodePorts.row(first + STEP * number).internal for number in range(len(before.nodes))]
            assert MOVED_VOTERS in before.nodes[0].config.read_text()
            wait_until(lambda: internal_ports(person) == moved, 20.0, "each voter to tell its new address")
            assert person.types("consume", "kept", "-e") == "before\n"

        for again in range(2):  # the first start still has the line, the second one does without
            person.types("down")
            person.types("up", "-d")
            assert MOVED_VOTERS not in before.nodes[again].config.read_text()
        leader = person.asks("quorum", "status")["leader"]
        person.types("kill", str(leader))
        person.types("produce", "kept", stdin="after\n")
        assert sorted(person.types("consume", "kept", "-e").split()) == ["after", "before"]
        assert internal_ports(person) == moved
    finally:
        person.leaves()
