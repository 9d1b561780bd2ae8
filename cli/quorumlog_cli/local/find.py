"""Finds the local cluster: that of --data, of this folder or one above it, or of the current profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog_cli.connect import find_target
from quorumlog_cli.errors import CliError, Exit
from quorumlog_cli.profile import Target

FOLDER = ".quorumlog"

DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Folder of the local cluster. [default: ./.quorumlog]")
]
NodeArgument = Annotated[int, typer.Argument(metavar="NODE", help="The node's id.")]


def find_root(data: Path | None) -> Path:
    """Raises CliError(NOT_FOUND) if there is none."""
    if data is not None:
        return data
    here = Path.cwd()
    for folder in (here, *here.parents):
        if has_cluster(folder / FOLDER):
            return folder / FOLDER
    from_profile = _profile_root()
    if from_profile is not None and has_cluster(from_profile):
        return from_profile
    raise CliError(
        Exit.NOT_FOUND,
        f"there is no local cluster in {here} or above it",
        "quorumlog up starts one; --data names another folder",
    )


def find_nodes(data: Path | None) -> LocalNodes:
    return LocalNodes.open(find_root(data))


def data_of(data: Path | None, node_id: int | None) -> Path:
    """The data of one node of the local cluster; None: of its first node."""
    nodes = find_nodes(data)
    return nodes.layout.node(nodes.ids[0] if node_id is None else node_id).data


def target_of(nodes: LocalNodes) -> Target:
    """This cluster, whatever the current profile. Only running nodes are listed, so that no other program answers."""
    running = nodes.in_state(NodeState.RUNNING) or nodes.ids
    servers = ",".join(nodes.layout.node(node_id).client_address for node_id in running)
    return Target(bootstrap_servers=servers, origin=str(nodes.layout.root))


def _profile_root() -> Path | None:
    return find_target(None, None, None).data_dir
