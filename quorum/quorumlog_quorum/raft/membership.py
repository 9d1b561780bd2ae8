"""What a node knows at its start about the voters and about itself as one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quorumlog.ids import NodeId
from quorumlog.messages.common import Endpoint
from quorumlog_quorum.raft.voters import DYNAMIC_LEVEL, STATIC_LEVEL, MembershipRecord, Voter, VoterKey

FIRST_BOOTSTRAP_ID: NodeId = -2  # the first bootstrap server is called -2, the next one -3, until it is known who it is
MIN_LEVEL, MAX_LEVEL = STATIC_LEVEL, DYNAMIC_LEVEL  # of kraft.version in this software


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedVoter:
    """Where the voter set in the log still names `old` as the address of this node, it is called at `new`.

    old, new: HOST, PORT.
    """

    node_id: NodeId
    old: tuple[str, int]
    new: tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """records: of the bootstrap checkpoint, of the latest snapshot and of the log, ascending by offset.

    endpoints: where this node listens, its internal listener first; empty: it never tells. can_become_voter: it has the
    role controller. auto_join: such a node makes itself a voter, once in the life of its directory. has_joined: this
    directory was a voter once. bootstrap: `controller.quorum.bootstrap.servers`. moved: where voters were and are.
    """

    records: tuple[MembershipRecord, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    can_become_voter: bool = False
    auto_join: bool = False
    has_joined: bool = False
    bootstrap: tuple[Endpoint, ...] = ()
    moved: tuple[MovedVoter, ...] = ()

    @property
    def bootstrap_ids(self) -> tuple[NodeId, ...]:
        return tuple(FIRST_BOOTSTRAP_ID - index for index in range(len(self.bootstrap)))

    def bootstrap_endpoint(self, node_id: NodeId) -> Endpoint | None:
        index = FIRST_BOOTSTRAP_ID - node_id
        return self.bootstrap[index] if 0 <= index < len(self.bootstrap) else None

    def after_move(self, node_id: NodeId, listed: Endpoint | None) -> Endpoint | None:
        """Where to call a voter that the set in the log has at `listed`. Only the way there changes, not who it is."""
        if listed is not None:
            for moved in self.moved:
                if (moved.node_id, moved.old) == (node_id, (listed.host, listed.port)):
                    return replace(listed, host=moved.new[0], port=moved.new[1])
        return listed

    def as_voter(self, key: VoterKey) -> Voter:
        """This node as a voter set names it."""
        return Voter(
            node_id=key.node_id,
            directory_id=key.directory_id,
            endpoint=self.endpoints[0],
            more_endpoints=self.endpoints[1:],
            min_version=MIN_LEVEL,
            max_version=MAX_LEVEL,
        )
