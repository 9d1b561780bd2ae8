"""Where the nodes of the quorum listen, as far as one node knows it: from the voters, a leader, and its settings."""

from __future__ import annotations

from quorumlog.ids import NodeId
from quorumlog.messages.common import Endpoint, NodeEndpoint
from quorumlog_quorum.raft.membership import Membership
from quorumlog_quorum.raft.voters import STATIC_LEVEL, VoterHistory


class Addresses:
    """Of the leaders only the newest is remembered. Callers pass on no word about the leader of an older epoch."""

    def __init__(self, node_id: NodeId, membership: Membership) -> None:
        self._node_id, self._membership = node_id, membership
        self._told: tuple[NodeId, Endpoint] | None = None  # what a leader has said about itself
        self._hinted: tuple[NodeId, Endpoint] | None = None  # what another node has said about a leader

    def of(self, node_id: NodeId, history: VoterHistory) -> Endpoint | None:
        """A static set is what its operator wants each node to use. Elsewhere a leader's own word is the newest.

        What an operator says of a voter that has moved counts for the address that the set in the log names.
        """
        listed, told = history.voters.endpoint_of(node_id), self._told_by(node_id)
        is_static = history.level == STATIC_LEVEL
        known = listed or told if is_static else told or self._membership.after_move(node_id, listed)
        return known or _if_of(self._hinted, node_id) or self._membership.bootstrap_endpoint(node_id)

    def listener(self, history: VoterHistory) -> str:
        """The name of the internal listener; empty if it is not known."""
        own = self._membership.endpoints or tuple(voter.endpoint for voter in history.voters.voters)
        return own[0].name if own else ""

    def tell(self, leader_id: NodeId, endpoints: tuple[Endpoint, ...]) -> None:
        """The leader has told where it listens, its internal listener first. Empty: it has not."""
        if endpoints:
            self._told = (leader_id, endpoints[0])

    def hint(self, leader_id: NodeId, hints: tuple[NodeEndpoint, ...], history: VoterHistory) -> None:
        """Another node has told where the leader listens. Empty: it has not."""
        for hint in hints:
            if hint.node_id == leader_id:
                self.keep(leader_id, Endpoint(name=self.listener(history), host=hint.host, port=hint.port))

    def keep(self, leader_id: NodeId, endpoint: Endpoint) -> None:
        """Remember an address that this node knows, though a later set may not name the leader any more."""
        self._hinted = (leader_id, endpoint)

    def bootstrap_answered(self, leader_id: NodeId, bootstrap_id: NodeId) -> None:
        """The bootstrap server of this id has answered as the leader."""
        endpoint = self._membership.bootstrap_endpoint(bootstrap_id)
        if endpoint is not None:
            self.keep(leader_id, endpoint)

    def _told_by(self, node_id: NodeId) -> Endpoint | None:
        """What a node says about itself."""
        if node_id == self._node_id and self._membership.endpoints:
            return self._membership.endpoints[0]
        return _if_of(self._told, node_id)


def _if_of(known: tuple[NodeId, Endpoint] | None, node_id: NodeId) -> Endpoint | None:
    return known[1] if known is not None and known[0] == node_id else None
