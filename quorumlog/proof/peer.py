"""The node at the other end, and its name in a SCRAM exchange: `cluster id/node id/incarnation`."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import NodeId, Uuid, format_uuid, parse_uuid

_MAX_NODE_ID_DIGITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """incarnation_id: names one life of the node's process."""

    cluster_id: str
    node_id: NodeId
    incarnation_id: Uuid


def name_of(peer: Peer) -> str:
    return f"{peer.cluster_id}/{peer.node_id}/{format_uuid(peer.incarnation_id)}"


def peer_of(name: str) -> Peer | None:
    """None: this is not the name of a node."""
    parts = name.rsplit("/", 2)
    if len(parts) != 3:
        return None
    cluster_id, node_id, incarnation = parts
    if not (node_id.isascii() and node_id.isdigit() and len(node_id) <= _MAX_NODE_ID_DIGITS):
        return None
    try:
        return Peer(cluster_id=cluster_id, node_id=int(node_id), incarnation_id=parse_uuid(incarnation))
    except ValueError:
        return None
