"""Whether a cluster's folder was moved or copied, and whether its nodes would write into it (decision 90).

A copy has the cluster's id, its nodes' ids, their directories' ids and their secret. Nothing that they say of
themselves tells it from the original; only the folders do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from quorumlog.testing.layout import Layout, LayoutError, has_cluster, read_layout
from quorumlog.testing.nodes import LocalNodes, node_environment
from quorumlog_cli.local.moved_voters import drop_spent_lines
from quorumlog_cli.local.new_ports import with_planned_ports
from quorumlog_cli.profiles.profile import Profiles
from quorumlog_cli.profiles.profile_file import read_user
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_server.config.config import read_config


def settle(nodes: LocalNodes) -> str:
    """Before nodes are started: "" or what to tell about the place. A cluster that was moved is at home here now.

    Raises CliError(PRECONDITION) if a node would write elsewhere, or if another copy of the cluster runs.
    """
    layout = nodes.layout = with_planned_ports(nodes.layout)
    check_paths(layout)
    copies = copies_of(layout, _profiles().by_name.values())
    for copy in copies:
        if LocalNodes.open(copy).serving():
            raise CliError(
                Exit.PRECONDITION,
                f"{layout.root} and {copy} are copies of one another: both hold cluster {layout.cluster_id} with the "
                f"same nodes, and those in {copy} run. Two copies of a node must never run at once",
                f"quorumlog down --data {copy} stops them; a cluster of its own begins in an empty directory",
            )
    if not nodes.serving():
        drop_spent_lines(layout)
    home = layout.home
    if home in copies:
        return f"a copy of {home}, with the same id: never start both"
    replace(layout, home=layout.root).write_marker()
    return f"moved from {home}" if home is not None and not _is_same(home, layout.root) else ""


def check_paths(layout: Layout) -> None:
    """Raises CliError unless each node's file names the node's own data, ConfigError if it cannot be read."""
    for node in layout.nodes:
        named = read_config(str(node.config), (), node_environment()).directories
        if os.path.realpath(node.data) not in map(os.path.realpath, named):
            raise CliError(
                Exit.PRECONDITION,
                f"{node.config} names {', '.join(named)}, but the data of node {node.node_id} is in {node.data}: this "
                "folder was moved or copied, and the node would use the other place",
                f"write log.dirs=data and paths.relative.to=file in {layout.root}/n*/server.properties; format nothing",
            )


def copies_of(layout: Layout, profiles: Iterable[Mapping[str, Any]]) -> list[Path]:
    """Other folders that hold the same cluster, as far as they are known: from the marker, and from profiles."""
    known = [layout.home, *(Path(values["data_dir"]) for values in profiles if values.get("data_dir"))]
    found = [root for root in known if root is not None and _holds_too(layout, root)]
    return list(dict.fromkeys(found))


def _profiles() -> Profiles:
    """None where their file cannot be read: a node can be started all the same."""
    try:
        return read_user()
    except (OSError, CliError):
        return Profiles()


def _holds_too(layout: Layout, root: Path) -> bool:
    try:
        return (
            has_cluster(root) and not _is_same(root, layout.root) and read_layout(root).cluster_id == layout.cluster_id
        )
    except (OSError, LayoutError):
        return False


def _is_same(one: Path, other: Path) -> bool:
    """Also by another path, as through a link."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
