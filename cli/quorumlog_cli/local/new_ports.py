"""Other ports for a local cluster that exists, where another program has taken the old ones: `up --port`.

Ports stand in the files of all nodes (listeners, addresses of the voters, the admin port) and in the marker. All nodes
must be stopped: one that ran would know the others by their old addresses. What all files will hold is written down
first, in one file, and is taken from there by the next start if this one is interrupted. Where the voters are in the
metadata log (kraft.version 1), the files also say how the addresses there are to be read (moved_voters.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from quorumlog.testing.layout import Layout
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import NodePorts, PortPicker
from quorumlog_cli.local.moved_voters import moved_line, with_line
from quorumlog_cli.local.whole_file import write_whole
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_server.config.config import NodeConfig, load

PLAN = "new-ports.json"
_PORTS_OF_A_NODE = re.compile(
    r"^(\s*(?:listeners|advertised\.listeners|controller\.quorum\.(?:voters|bootstrap\.servers)|metrics\.port)\s*[=:])(.*)$",
    re.MULTILINE,
)


def give_ports(nodes: LocalNodes, picker: PortPicker) -> None:
    """Those that the picker picks. Raises CliError(PRECONDITION), NoFreePorts; then nothing was changed."""
    layout = nodes.layout
    if running := nodes.serving():
        raise CliError(
            Exit.PRECONDITION,
            f"nodes {', '.join(map(str, running))} of the cluster in {layout.root} run, at ports from "
            f"{layout.nodes[0].ports.client} on; ports can be changed only while all are stopped",
            f"quorumlog down --data {layout.root} stops them",
        )
    ports = picker.pick(len(nodes.ids))
    line = moved_line(layout, {node.node_id: new.internal for node, new in zip(layout.nodes, ports, strict=True)})
    pairs = [(node.ports.all, new.all) for node, new in zip(layout.nodes, ports, strict=True)]
    changes = {old: new for olds, news in pairs for old, new in zip(olds, news, strict=True)}
    texts = {node.node_id: with_line(_changed(node.config, changes), line) for node in layout.nodes}
    plan = {"ports": [asdict(one) for one in ports], "files": texts}
    write_whole(layout.root / PLAN, json.dumps(plan))
    nodes.layout = with_planned_ports(layout)


def with_planned_ports(layout: Layout) -> Layout:
    """The layout as a change of ports leaves it that was planned, whether or not it was interrupted."""
    path = layout.root / PLAN
    try:
        plan = json.loads(path.read_text())
    except FileNotFoundError:
        return layout
    for node in layout.nodes:
        write_whole(node.config, plan["files"][str(node.node_id)])
    ports = [NodePorts(**one) for one in plan["ports"]]
    moved = [replace(node, ports=new) for node, new in zip(layout.nodes, ports, strict=True)]
    made = replace(layout, nodes=tuple(moved))
    made.write_marker()
    path.unlink()
    return made


def _changed(path: Path, changes: Mapping[int, int]) -> str:
    """A node's file with other ports. Raises CliError if it names ports in a way that is not known here."""
    text = path.read_text()

    def other(found: re.Match[str]) -> str:
        ports = re.sub(r"\d+\b", lambda port: str(changes.get(int(port[0]), port[0])), found[2])
        return f"{found[1]}{ports}"

    made = _PORTS_OF_A_NODE.sub(other, text)
    before, after = (_ports_of(load(str(path), one, {})) for one in (text, made))
    if [changes.get(port, port) for port in before] != after:
        raise CliError(
            Exit.PRECONDITION,
            f"{path} was edited: its ports are not all in the lines that `up` writes. Nothing was changed",
            "change the ports there by hand, in the files of all nodes and in cluster.json",
        )
    return made


def _ports_of(config: NodeConfig) -> list[int]:
    addresses = [*(one.address for one in config.listeners), *(voter.address for voter in config.voters)]
    ports = [address.port for address in (*addresses, *config.bootstrap_servers)]
    return [*ports, *([config.process.metrics_port] if config.process.metrics_port is not None else [])]
