"""A request of the quorum comes from the node that it names as its sender. The transport has verified the sender."""

from __future__ import annotations

from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    QuorumFetchRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from quorumlog.proof.peer import Peer
from quorumlog_quorum.raft import ReceivedRequest


def check_request(peer: Peer | None, request: Any) -> ReceivedRequest:
    """Raises ApiError. peer: the verified sender; None if the transport verifies no identity (in tests)."""
    if not isinstance(request, ReceivedRequest):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{type(request).__name__} is not a request of the quorum")
    claimed = _claimed_sender(request)
    if peer is not None and claimed is not None and claimed != peer.node_id:
        raise ApiError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{type(request).__name__} names node {claimed} as its sender, but node {peer.node_id} sent it",
        )
    return request


def _claimed_sender(request: ReceivedRequest) -> NodeId | None:
    """The node that a request names as its sender; None for a request that any node may send."""
    match request:
        case VoteRequest(candidate_id=node_id):
            return node_id
        case BeginQuorumEpochRequest(leader_id=node_id) | EndQuorumEpochRequest(leader_id=node_id):
            return node_id
        case UpdateRaftVoterRequest(voter_id=node_id):
            return node_id
        case QuorumFetchRequest(replica_id=node_id) | FetchSnapshotRequest(replica_id=node_id):
            return None if node_id == NO_NODE else node_id
        case _:
            return None
