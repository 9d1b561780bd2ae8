"""Finds the local cluster that a command means: that of --data, of this directory or one above it, or of the profile.

What stops nodes or deletes data acts on the cluster of the working directory itself, or on the one that --data names: a
cluster in a home directory is not that of every directory in it (decision 89).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quorumlog.testing.layout import has_cluster
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.protected import Access
from quorumlog_cli.connecting.connect import find_target
from quorumlog_cli.local.here import FOLDER, read_here
from quorumlog_cli.profiles.profile import Asked, Here, Target, names_another
from quorumlog_cli.terminal.errors import CliError, Exit

DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Folder of the local cluster. [default: ./.quorumlog]")
]
NodeArgument = Annotated[int, typer.Argument(metavar="NODE", help="The node's id.")]


def find_root(data: Path | None, harms: str = "") -> Path:
    """harms: the command, if it stops nodes or deletes data. Raises CliError(NOT_FOUND, PRECONDITION)."""
    if data is not None:
        return data
    cwd, variable = Path.cwd(), names_another(Asked(), os.environ)
    return choose_root(cwd, variable, None if variable else read_here(cwd), find_target(None, None, None), harms)


def choose_root(cwd: Path, variable: str, here: Here | None, target: Target, harms: str) -> Path:
    """Of a command without --data. variable: one that names another cluster. here: None with a variable.

    target: what commands without --data use. Raises CliError as `find_root` does.
    """
    if here is not None and not (here.is_below and harms):
        return here.root
    root = target.data_dir
    if root is None or not has_cluster(root):
        raise _not_there(cwd, variable, target)
    if not harms or root == cwd / FOLDER:
        return root
    where = f"{cwd} is below it" if here is not None else f"it was found by {variable or target.origin}"
    raise CliError(
        Exit.PRECONDITION,
        f"{target.name} is not the cluster of this directory: {where}. Nothing was done",
        f"quorumlog {harms} --data {root} means it",
    )


def _not_there(cwd: Path, variable: str, target: Target) -> CliError:
    if variable:
        return CliError(
            Exit.NOT_FOUND,
            f"{variable} names {target.bootstrap_servers}, which is no local cluster",
            "unset it, or name the folder of a local cluster with --data",
        )
    return CliError(
        Exit.NOT_FOUND,
        f"there is no local cluster in {cwd} or above it",
        "quorumlog up starts one; --data names another folder",
    )


def find_nodes(data: Path | None, harms: str = "") -> LocalNodes:
    """See `find_root`."""
    return LocalNodes.open(find_root(data, harms))


def data_of(data: Path | None, node_id: int | None) -> Path:
    """The data of one node of the local cluster; None: of its first node."""
    nodes = find_nodes(data)
    return nodes.layout.node(nodes.ids[0] if node_id is None else node_id).data


def target_of(nodes: LocalNodes) -> Target:
    """This cluster, whatever the current profile. Only running nodes are listed, so that no other program answers."""
    serving = nodes.serving() or nodes.ids
    servers = ",".join(nodes.layout.node(node_id).client_address for node_id in serving)
    security = Access(nodes.layout).profile() if nodes.layout.user else {}
    return Target(
        bootstrap_servers=servers,
        origin=str(nodes.layout.root),
        options={"cluster_id": nodes.layout.cluster_id, **security},
        data_dir=nodes.layout.root,
    )


def name_of(nodes: LocalNodes) -> str:
    """Which cluster a command acted on, and where it is."""
    return f"cluster {nodes.layout.cluster_id} in {nodes.layout.root}"


def where_of(nodes: LocalNodes) -> dict[str, str]:
    """The same in a document."""
    return {"cluster_id": nodes.layout.cluster_id, "data_dir": str(nodes.layout.root)}
