"""`up --port` on a cluster that exists: every file that names its ports, interruptions, and what is refused."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.records.control import KRaftVersion, Voter, VoterEndpoint, Voters, control_batch
from quorumlog.testing import port_holder
from quorumlog.testing.layout import read_layout
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import HOST, STEP, NodePorts, PortPicker
from quorumlog_cli.local import new_ports
from quorumlog_cli.local.format_all import format_all
from quorumlog_cli.local.new_ports import give_ports, with_planned_ports
from quorumlog_cli.local.place import settle
from quorumlog_cli.offline.metadata_log import DIRECTORY
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_server.config.config import read_config

COUNT = 3


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[LocalNodes]:
    """Formatted, and never started."""
    picker = PortPicker()
    try:
        yield LocalNodes.create(tmp_path / "c", COUNT, {"num.partitions": "9092"}, picker, format_all)
    finally:
        picker.close()


def shifted(nodes: LocalNodes) -> list[NodePorts]:
    """Each node gets the ports that the next one may have."""
    return [NodePorts.row(node.ports.client + STEP) for node in nodes.layout.nodes]


class Picks(PortPicker):
    """What it is told, also where others have them: nothing is started here."""

    def __init__(self, ports: list[NodePorts]) -> None:
        super().__init__()
        self._ports = ports

    def pick(self, count: int) -> list[NodePorts]:
        assert count == len(self._ports)
        return self._ports


def the_files_agree(nodes: LocalNodes, ports: list[NodePorts]) -> None:
    layout = read_layout(nodes.layout.root)
    assert [node.ports for node in layout.nodes] == ports
    for node in layout.nodes:
        config = read_config(str(node.config), (), {})
        found = {listener.address.port for listener in config.listeners} | {config.process.metrics_port}
        assert found == set(node.ports.all)
        assert [voter.address.port for voter in config.voters] == [one.internal for one in ports]
        assert config.controller.num_partitions == 9092


def test_every_file_gets_the_new_ports(nodes: LocalNodes) -> None:
    ports = shifted(nodes)
    give_ports(nodes, Picks(ports))
    assert [node.ports for node in nodes.layout.nodes] == ports
    the_files_agree(nodes, ports)
    assert not [*nodes.layout.root.rglob("*.tmp"), *nodes.layout.root.rglob(new_ports.PLAN)]


@pytest.mark.parametrize("written", range(COUNT + 1))
def test_a_change_that_was_interrupted_is_finished_by_the_next_start(
    nodes: LocalNodes, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """written: how many of the nodes' files were written."""
    ports, write, left = shifted(nodes), new_ports.write_whole, [written + 1]

    def interrupted(path: Path, text: str) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        write(path, text)

    def no_marker(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(new_ports, "write_whole", interrupted)
        patched.setattr("quorumlog.testing.layout.Layout.write_marker", no_marker)
        give_ports(nodes, Picks(ports))
    again = LocalNodes.open(nodes.layout.root)
    settle(again)
    assert [node.ports for node in again.layout.nodes] == ports
    the_files_agree(nodes, ports)
    assert with_planned_ports(again.layout) is again.layout


def untouched(nodes: LocalNodes, reason: str) -> None:
    before = {path: path.read_bytes() for path in nodes.layout.root.rglob("*") if path.is_file()}
    with pytest.raises(CliError, match=reason) as refused:
        give_ports(nodes, Picks(shifted(nodes)))
    assert refused.value.code is Exit.PRECONDITION and refused.value.hint
    assert {path: path.read_bytes() for path in nodes.layout.root.rglob("*") if path.is_file()} == before


def test_a_cluster_that_runs_keeps_its_ports(nodes: LocalNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "serving", lambda: [2])
    untouched(nodes, "nodes 2 of the cluster .* run")


def test_a_file_whose_ports_stand_elsewhere_is_not_changed(nodes: LocalNodes) -> None:
    config = nodes.layout.nodes[1].config
    config.write_text(config.read_text().replace("listeners=", "listeners=\\\n "))
    untouched(nodes, "was edited: its ports are not all in the lines")


def put_voters(nodes: LocalNodes, node_id: int, internal: dict[int, int]) -> None:
    """What the node's metadata log names, as after `feature upgrade kraft.version=1`. internal: ports by node id."""
    log = nodes.layout.node(node_id).data / DIRECTORY
    log.mkdir(exist_ok=True)
    voters = [
        Voter(one, bytes([one]) * 16, (VoterEndpoint("INTERNAL", HOST, port),), 0, 1) for one, port in internal.items()
    ]
    records = [KRaftVersion(1), Voters(tuple(voters))]
    (log / f"{0:020d}.log").write_bytes(control_batch(records, base_offset=0, timestamp_ms=1, leader_epoch=1))


def moved(nodes: LocalNodes) -> list[set[tuple[int, int, int]]]:
    """What each node's file says: id, old port, new port."""
    configs = [read_config(str(node.config), (), {}) for node in nodes.layout.nodes]
    return [{(one.node_id, one.old.port, one.new.port) for one in config.moved_voters} for config in configs]


def test_voters_in_the_metadata_log_are_found_at_their_new_addresses(nodes: LocalNodes) -> None:
    """Node 2 lacks a change that node 3 has; what was said before is said anew for the ports of now."""
    first, ports = [node.ports for node in nodes.layout.nodes], shifted(nodes)
    old = {number: one.internal for number, one in enumerate(first, start=1)}
    put_voters(nodes, 2, old)
    put_voters(nodes, 3, {**old, 3: 31_000})
    for row in (shifted(nodes), first, ports):
        give_ports(nodes, Picks(row))
        the_files_agree(nodes, row)
        new = {number: one.internal for number, one in enumerate(row, start=1)}
        want = {(number, port, new[number]) for number, port in (*old.items(), (3, 31_000)) if port != new[number]}
        assert moved(nodes) == [want] * COUNT
    settle(nodes)
    assert moved(nodes) == [want] * COUNT, "a log still names the old addresses"
    for node_id in (2, 3):
        put_voters(nodes, node_id, new)
    settle(nodes)
    assert moved(nodes) == [set()] * COUNT and "moved" not in nodes.layout.nodes[0].config.read_text()


def test_a_voter_that_is_elsewhere_is_not_left_behind(nodes: LocalNodes) -> None:
    put_voters(nodes, 1, {4: 9093})
    untouched(nodes, r"voters that are not in it: \[4\]")


def test_nobody_holds_a_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        assert port_holder.holder_of(port).startswith(f"process {os.getpid()} (")
        monkeypatch.setattr(port_holder, "_processes", list)  # the process of another user
        assert port_holder.holder_of(port) == "another program"
    assert port_holder.holder_of(port) == "another program"
