"""The configuration of a local cluster's nodes: an ordinary `server.properties`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.ports import HOST, NodePorts

MAX_REPLICATION = 3
SESSION_TIMEOUT_MS = 3_000
CUT_LINKS_KEY = "debug.cut.links.file"


def properties_of(node: NodeFiles, nodes: Sequence[NodeFiles], changes: Mapping[str, str]) -> str:
    """The file of one node among `nodes`. changes: Kafka's key names; they override the defaults."""
    replication = min(MAX_REPLICATION, len(nodes))
    voters = ",".join(f"{peer.node_id}@{HOST}:{peer.ports.internal}" for peer in nodes)
    values = {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "listeners": _listeners(node.ports),
        "controller.quorum.voters": voters,
        "paths.relative.to": "file",  # the cluster can be moved, and a copy has its own data
        "log.dirs": str(node.data.relative_to(node.folder)),
        "default.replication.factor": str(replication),
        "offsets.topic.replication.factor": str(replication),
        "transaction.state.log.replication.factor": str(replication),
        "min.insync.replicas": str(max(1, replication - 1)),
        "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "metrics.port": str(node.ports.admin),
        "log.format": "json",
        "rpc.reflection": "true",
        CUT_LINKS_KEY: node.cut_links.name,
        **changes,
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _listeners(ports: NodePorts) -> str:
    places = {"CLIENT": ports.client, "GRPC": ports.grpc, "REPLICATION": ports.replication, "INTERNAL": ports.internal}
    return ",".join(f"{name}://{HOST}:{port}" for name, port in places.items())
