"""The files of a local cluster, and the marker file that lists its nodes.

    <root>/cluster.json            the marker, written last: a root without it holds an interrupted start
    <root>/n1/server.properties    the node's configuration
    <root>/n1/data/                its log directory
    <root>/n1/node.log             its output
    <root>/n1/node.pid             its process: pid and start time
    <root>/n1/cut.links            the nodes that it cannot reach, while links are cut

A cluster that was made with TLS has more (protected.py).

Everything is found by the marker or by a fixed name, never by guessing from other files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from quorumlog.ids import NodeId
from quorumlog.testing.ports import HOST, NodePorts

MARKER = "cluster.json"
LAYOUT_VERSION = 2  # version 1 had no ports for gRPC and replication


class LayoutError(Exception):
    """A root that cannot be used. The message says why and what to do."""


class NotThere(LayoutError):
    """The cluster, or the node in it, does not exist."""


class PortTaken(LayoutError):
    """Another program uses a node's port."""


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """The files and ports of one node."""

    node_id: NodeId
    folder: Path
    ports: NodePorts

    @property
    def config(self) -> Path:
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "node.log"

    @property
    def pid_file(self) -> Path:
        return self.folder / "node.pid"

    @property
    def cut_links(self) -> Path:
        """What it cannot reach (cuts.py); not there: nothing is cut."""
        return self.folder / "cut.links"

    @property
    def client_address(self) -> str:
        """The listener for Kafka's protocol; our own clients learn the others from it."""
        return f"{HOST}:{self.ports.client}"

    @property
    def grpc_address(self) -> str:
        return f"{HOST}:{self.ports.grpc}"


@dataclass(frozen=True, slots=True)
class Layout:
    """nodes: by id. home: the root where the cluster was made, or where it was moved to; a copy has its original's.

    None: not known. user: whom clients log in as; empty: the cluster has no TLS, and serves everybody.
    """

    root: Path
    cluster_id: str
    nodes: tuple[NodeFiles, ...]
    home: Path | None = field(default=None, compare=False)
    user: str = ""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.client_address for node in self.nodes)

    def node(self, node_id: NodeId) -> NodeFiles:
        """Raises NotThere if the cluster has no such node."""
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        ids = ", ".join(str(node.node_id) for node in self.nodes)
        raise NotThere(f"{self.root} has no node {node_id}; it has {ids}")

    def write_marker(self) -> None:
        nodes = [{"node_id": node.node_id, **asdict(node.ports)} for node in self.nodes]
        home = str((self.home or self.root).absolute())
        content = {"version": LAYOUT_VERSION, "cluster_id": self.cluster_id, "home": home, "nodes": nodes}
        if self.user:
            content["user"] = self.user
        temporary = self.root / f"{MARKER}.tmp"
        temporary.write_text(json.dumps(content, indent=2) + "\n")
        temporary.replace(self.root / MARKER)


def node_folder(root: Path, node_id: NodeId) -> Path:
    return root / f"n{node_id}"


def has_cluster(root: Path) -> bool:
    return (root / MARKER).is_file()


def read_layout(root: Path) -> Layout:
    """The cluster in `root`. Raises NotThere, LayoutError."""
    try:
        content = json.loads((root / MARKER).read_text())
        return _from_content(root, content)
    except FileNotFoundError:
        raise NotThere(f"{root} holds no local cluster; start one with: quorumlog up") from None
    except (ValueError, KeyError, TypeError) as error:
        raise LayoutError(
            f"{root / MARKER} cannot be read ({error}); remove {root} if its data is not needed"
        ) from error


def check_unused(root: Path) -> None:
    """Raises LayoutError unless a new cluster may be created in `root`: it must not exist, or be empty."""
    if any(character in str(root) for character in ",\\\n"):
        raise LayoutError(f"{str(root)!r} cannot be a data directory: its path has a comma, backslash or line break")
    if not root.exists():
        return
    if not root.is_dir():
        raise LayoutError(f"{root} is not a directory; choose another with --data")
    found = sorted(path.name for path in root.iterdir())
    if MARKER in found:
        raise LayoutError(f"{root} holds a cluster already. Nothing in it was changed; choose another with --data")
    if found:
        raise LayoutError(
            f"{root} holds {', '.join(found[:5])} but no {MARKER}: an interrupted start, or files of another program. "
            "Nothing in it was changed; remove it yourself, or choose another with --data"
        )


def check_whole(layout: Layout) -> None:
    """Raises LayoutError unless every node's directory exists. A missing one may have held acknowledged writes, so it
    is never formatted again."""
    for node in layout.nodes:
        if not (node.data / "meta.properties").is_file():
            raise LayoutError(
                f"{node.data} of node {node.node_id} is missing or not formatted; restore it, "
                f"or delete the cluster's data with: quorumlog purge --data {layout.root}"
            )


def _from_content(root: Path, content: Mapping[str, Any]) -> Layout:
    if content["version"] != LAYOUT_VERSION:
        raise ValueError(f"version {content['version']}, supported is {LAYOUT_VERSION}")
    nodes = tuple(
        NodeFiles(
            int(node["node_id"]),
            node_folder(root, int(node["node_id"])),
            NodePorts(*(int(node[name]) for name in ("client", "internal", "admin", "grpc", "replication"))),
        )
        for node in content["nodes"]
    )
    home = content.get("home")
    user = str(content.get("user", ""))
    return Layout(root, str(content["cluster_id"]), nodes, None if home is None else Path(home), user)
