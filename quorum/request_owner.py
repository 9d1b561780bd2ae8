"""Whether a request of the quorum comes from the node that it speaks for: the wire has verified who calls."""

from __future__ import annotations

from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    VoteRequest,
)
from quorumlog.rpc.transport import Identity


def check_owner(peer: Identity | None, request: Any) -> None:
    """Raises ApiError. peer: None on a listener whose wire verifies nobody (tests of one process)."""
    claimed = _claimed(request)
    if peer is not None and claimed is not None and claimed != peer.node_id:
        raise ApiError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{type(request).__name__} speaks for node {claimed}, and node {peer.node_id} sent it",
        )


def _claimed(request: Any) -> NodeId | None:
    """The node that a request says it comes from; None of one that anybody may send."""
    match request:
        case VoteRequest(candidate_id=node_id):
            return node_id
        case BeginQuorumEpochRequest(leader_id=node_id) | EndQuorumEpochRequest(leader_id=node_id):
            return node_id
        case QuorumFetchRequest(replica_id=node_id):
            return None if node_id == NO_NODE else node_id
        case _:
            return None
