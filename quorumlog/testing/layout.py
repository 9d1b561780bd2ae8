"""Where a local cluster keeps its things, and the file that says so.

    <root>/cluster.json            the marker: written last, so a root without it holds an interrupted start
    <root>/n1/server.properties    what the node is started with
    <root>/n1/data/                its log directory
    <root>/n1/node.log             what it said
    <root>/n1/node.pid             its process: pid and start time

Everything here is stated by the marker or by a name; nothing is guessed from what happens to lie about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quorumlog.ids import NodeId
from quorumlog.testing.ports import HOST, NodePorts

MARKER = "cluster.json"
LAYOUT_VERSION = 2  # 1 had no ports of gRPC and replication


class LayoutError(Exception):
    """A root that cannot be used as it is; the text says why and what to do."""


class NotThere(LayoutError):
    """No such cluster, or no such node in it."""


class PortTaken(LayoutError):
    """A port of a node belongs to another program now."""


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """One node's place."""

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
    def client_address(self) -> str:
        """Kafka's protocol is spoken there; clients of our own find the rest by themselves."""
        return f"{HOST}:{self.ports.client}"

    @property
    def grpc_address(self) -> str:
        return f"{HOST}:{self.ports.grpc}"


@dataclass(frozen=True, slots=True)
class Layout:
    """nodes: by id."""

    root: Path
    cluster_id: str
    nodes: tuple[NodeFiles, ...]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.client_address for node in self.nodes)

    def node(self, node_id: NodeId) -> NodeFiles:
        """Raises NotThere for an id that the cluster does not have."""
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        ids = ", ".join(str(node.node_id) for node in self.nodes)
        raise NotThere(f"there is no node {node_id} in {self.root}; there are {ids}")

    def write_marker(self) -> None:
        nodes = [{"node_id": node.node_id, **asdict(node.ports)} for node in self.nodes]
        content = {"version": LAYOUT_VERSION, "cluster_id": self.cluster_id, "nodes": nodes}
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
        raise NotThere(f"there is no local cluster in {root}; start one with: quorumlog up") from None
    except (ValueError, KeyError, TypeError) as error:
        raise LayoutError(
            f"{root / MARKER} cannot be read ({error}); remove {root} if its data is not needed"
        ) from error


def check_unused(root: Path) -> None:
    """A new cluster may be made in `root`: it is not there, or it is empty. Raises LayoutError."""
    if any(character in str(root) for character in ",\\\n"):
        raise LayoutError(f"{str(root)!r} cannot be a data directory: no comma, backslash or line break in its path")
    if not root.exists():
        return
    if not root.is_dir():
        raise LayoutError(f"{root} is not a directory; choose another with --data")
    found = sorted(path.name for path in root.iterdir())
    if found:
        raise LayoutError(
            f"{root} holds {', '.join(found[:5])} but no {MARKER}: an interrupted start, or something else's files. "
            "Nothing in it was touched; remove it yourself, or choose another with --data"
        )


def check_whole(layout: Layout) -> None:
    """Every node's directory is there. A lost one is never formatted anew: it may have held acknowledged writes."""
    for node in layout.nodes:
        if not (node.data / "meta.properties").is_file():
            raise LayoutError(
                f"{node.data} of node {node.node_id} is missing or not formatted; bring it back, "
                f"or give up the cluster's data with: quorumlog purge --data {layout.root}"
            )


def _from_content(root: Path, content: Mapping[str, Any]) -> Layout:
    if content["version"] != LAYOUT_VERSION:
        raise ValueError(f"version {content['version']}, known is {LAYOUT_VERSION}")
    nodes = tuple(
        NodeFiles(
            int(node["node_id"]),
            node_folder(root, int(node["node_id"])),
            NodePorts(*(int(node[name]) for name in ("client", "internal", "admin", "grpc", "replication"))),
        )
        for node in content["nodes"]
    )
    return Layout(root, str(content["cluster_id"]), nodes)
