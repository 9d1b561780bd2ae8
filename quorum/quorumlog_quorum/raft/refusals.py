"""What a node answers to those whose wish it cannot fulfil. Each answer names the leader, so that they can go there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch, NodeId
from quorumlog.messages.common import NodeEndpoint
from quorumlog.messages.quorum import FetchSnapshotResponse, QuorumFetchResponse, TransferLeadershipResponse
from quorumlog_quorum.raft.effects import LeadershipConfirmed, RaftEffect, Reply
from quorumlog_quorum.raft.roles import Leader
from quorumlog_quorum.raft.voter_change import answer_to


class Refusals(NamedTuple):
    """leader_id: -1 if none is known. hints: its address; empty if it is not known."""

    leader_id: NodeId
    epoch: Epoch
    hints: tuple[NodeEndpoint, ...]

    def fetch(self, code: ErrorCode) -> QuorumFetchResponse:
        return QuorumFetchResponse(
            error_code=code,
            leader_id=self.leader_id,
            leader_epoch=self.epoch,
            node_endpoints=self.hints,
        )

    def snapshot(self, code: ErrorCode) -> FetchSnapshotResponse:
        return FetchSnapshotResponse(
            error_code=code,
            leader_id=self.leader_id,
            leader_epoch=self.epoch,
            node_endpoints=self.hints,
        )

    def of_former(self, node_id: NodeId, old: Leader) -> Iterator[RaftEffect]:
        """To all who wait for a leader that leads no longer. node_id: its own."""
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        for parked in (*old.parked, *old.watching, *old.reading.values()):
            yield Reply(parked.token, self.fetch(code))
        if old.hand_over is not None and old.hand_over.token is not None:
            yield Reply(old.hand_over.token, TransferLeadershipResponse(error_code=code, leader_epoch=self.epoch))
        for token in old.rounds.take_confirmed(old.rounds.newest):
            yield LeadershipConfirmed(token, confirmed=False)
        for token in old.reading_snapshots:
            yield Reply(token, self.snapshot(code))
        if old.change is not None and old.change.token is not None:
            text = f"node {node_id} leads no longer; the change may take effect or not: look at the voters"
            yield answer_to(old.change.kind, old.change.token, code, text, self.leader_id, self.epoch)
