"""The node at the other end, and its name in a SCRAM exchange: `cluster id/node id/incarnation`.

A node of a cluster that was recovered adds its cluster incarnation. Its name says nothing to software from before
there were cluster incarnations, which refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation, parse_incarnation
from quorumlog.ids import NodeId, Uuid, format_uuid, parse_uuid

_MAX_NODE_ID_DIGITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """incarnation_id: names one life of the node's process. cluster_incarnation: the life of the cluster that it
    belongs to."""

    cluster_id: str
    node_id: NodeId
    incarnation_id: Uuid
    cluster_incarnation: ClusterIncarnation = FIRST


def name_of(peer: Peer) -> str:
    name = f"{peer.cluster_id}/{peer.node_id}/{format_uuid(peer.incarnation_id)}"
    return name if peer.cluster_incarnation.is_first else f"{name}/{peer.cluster_incarnation}"


def peer_of(name: str) -> Peer | None:
    """None: this is not the name of a node."""
    name, cluster_incarnation = _split(name)
    parts = name.rsplit("/", 2)
    if len(parts) != 3:
        return None
    cluster_id, node_id, incarnation = parts
    if not (node_id.isascii() and node_id.isdigit() and len(node_id) <= _MAX_NODE_ID_DIGITS):
        return None
    try:
        return Peer(
            cluster_id=cluster_id,
            node_id=int(node_id),
            incarnation_id=parse_uuid(incarnation),
            cluster_incarnation=cluster_incarnation,
        )
    except ValueError:
        return None


def _split(name: str) -> tuple[str, ClusterIncarnation]:
    """The name without its cluster incarnation, which has a dot; an id has none."""
    front, _, last = name.rpartition("/")
    try:
        return (front, parse_incarnation(last)) if "." in last else (name, FIRST)
    except ValueError:
        return name, FIRST
