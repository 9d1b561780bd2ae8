"""DescribeQuorum: the voters and observers, and how far each of them is. Only the leader knows."""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.quorum import DescribeQuorumResponse, QuorumNode, QuorumReplica
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.reconfiguring import describe_change
from quorumlog_quorum.raft.replicas import Replica
from quorumlog_quorum.raft.roles import Leader


def describe(core: Core, now_ms: int) -> DescribeQuorumResponse:
    """The driver adds the cluster id."""
    leader = core.role
    if not isinstance(leader, Leader):
        return DescribeQuorumResponse(
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=core.leader_hint, leader_epoch=core.epoch
        )
    leader.replicas.forget_observers(core.config.observer_session_ms, now_ms)
    rows = [
        _row(node_id, core.voters.directory_of(node_id), r, now_ms) for node_id, r in leader.replicas.voters.items()
    ]
    own = QuorumReplica(
        replica_id=core.node_id,
        directory_id=core.key.directory_id,
        log_end_offset=core.log.written_end,
        since_fetch_ms=0,
        since_caught_up_ms=0,
    )
    observers = [_row(key.node_id, key.directory_id, r, now_ms) for key, r in leader.replicas.observers.items()]
    (rows if leader.replicas.leader_counts else observers).append(own)
    return DescribeQuorumResponse(
        leader_id=core.node_id,
        leader_epoch=core.epoch,
        high_watermark=core.high_watermark,
        voters=tuple(sorted(rows, key=lambda row: row.replica_id)),
        observers=tuple(sorted(observers, key=lambda row: (row.replica_id, row.directory_id))),
        nodes=tuple(
            QuorumNode(node_id=v.node_id, endpoints=(v.endpoint, *v.more_endpoints)) for v in core.voters.voters
        ),
        kraft_version=core.history.level,
        voter_change=describe_change(core),
    )


def follower_lags(core: Core) -> dict[str, int]:
    """By node, how many offsets of the leader's log the node has not fetched; empty: this node does not lead.

    A node that has not fetched since the election lacks all of it, as far as the leader knows. Any thread may ask.
    """
    leader = core.role
    if not isinstance(leader, Leader):
        return {}
    end, replicas = core.log.written_end, leader.replicas
    found = {str(node): replica for node, replica in replicas.voters.copy().items()}
    for key, replica in replicas.observers.copy().items():
        found.setdefault(str(key.node_id), replica)
    return {node: max(0, end - max(0, replica.end_offset)) for node, replica in found.items()}


def _row(node_id: NodeId, directory_id: Uuid, replica: Replica, now_ms: int) -> QuorumReplica:
    return QuorumReplica(
        replica_id=node_id,
        directory_id=directory_id,
        log_end_offset=replica.end_offset,
        since_fetch_ms=-1 if replica.fetched_at_ms is None else now_ms - replica.fetched_at_ms,
        since_caught_up_ms=-1 if replica.caught_up_at_ms is None else now_ms - replica.caught_up_at_ms,
    )
