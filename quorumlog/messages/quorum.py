"""The metadata quorum: Raft as in KRaft (KIP-595, KIP-996, KIP-853).

There is one log, so no message names a topic or a partition. The sender's identity (cluster id, node id,
incarnation) is sent with every internal call, beside the message. A message names nodes where the protocol does.

Written by `./dev proto` from proto/quorumlog/v1/quorum.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.common import Endpoint, EpochEndOffset, NodeEndpoint, SnapshotId
from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    """epoch: The candidate's epoch: for a standard vote its own epoch plus one, for a pre-vote its own.
    voter_id: The voter that the request is for; any other voter answers INVALID_VOTER_KEY.
    last_epoch: Epoch of the candidate's last record, and the offset after it.
    """

    epoch: int
    candidate_id: int
    candidate_directory_id: bytes = b""
    voter_id: int
    voter_directory_id: bytes = b""
    last_epoch: int
    last_epoch_end_offset: int
    pre_vote: bool


@message(frozen=True, slots=True, kw_only=True)
class VoteResponse:
    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1
    vote_granted: bool = False
    node_endpoints: tuple[NodeEndpoint, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochRequest:
    leader_id: int
    leader_epoch: int
    voter_id: int
    voter_directory_id: bytes = b""
    leader_endpoints: tuple[Endpoint, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochResponse:
    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochRequest:
    """preferred_candidates: Voters in the order in which they should become candidates; the most caught up comes
    first.
    """

    leader_id: int
    leader_epoch: int
    preferred_candidates: tuple[PreferredCandidate, ...] = ()
    leader_endpoints: tuple[Endpoint, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class PreferredCandidate:
    node_id: int
    directory_id: bytes = b""


@message(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochResponse:
    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class QuorumFetchRequest:
    """replica_id: -1: a reader that the leader does not track.
    high_watermark: The replica's high watermark; a leader with a higher one answers at once (KIP-1166).
    read_round: The newest read round that this leader has told the replica in this epoch; -1: none. It proves
    that the replica
        followed this leader after the round began. 0: the replica's software knows no rounds.
    """

    replica_id: int
    replica_directory_id: bytes = b""
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    max_wait_ms: int
    max_bytes: int
    high_watermark: int = -1
    read_round: int = -1


@message(frozen=True, slots=True, kw_only=True)
class QuorumFetchResponse:
    """high_watermark: -1: not known yet in this epoch.
    read_round: The leader's newest read round. The replica's next fetch names it.
    """

    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset | None = None
    snapshot_id: SnapshotId | None = None
    records: Buffer = b""
    node_endpoints: tuple[NodeEndpoint, ...] = ()
    read_round: int = 0


@message(frozen=True, slots=True, kw_only=True)
class TransferLeadershipRequest:
    """Asks the leader to hand its leadership over to another voter.

    to_node_id: -1: to the voter that is ready first.
    """

    to_node_id: int = -1


@message(frozen=True, slots=True, kw_only=True)
class TransferLeadershipResponse:
    """leader_id: A controller names the voter to which it has handed over, and its own epoch. A broker waits for the
    election, and
        names who leads then.
    """

    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class AddRaftVoterRequest:
    """Make an observer a voter (KIP-853). Only the leader can, one change at a time.

    cluster_id: Empty: whatever the cluster is.
    timeout_ms: How long the leader may wait until the node has caught up, and for the commit.
    listeners: Of the new voter; one of them has the name of the leader's internal listener.
    ack_when_committed: False: the answer is sent as soon as the change is in the leader's log.
    """

    cluster_id: str = ""
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    listeners: tuple[Endpoint, ...] = ()
    ack_when_committed: bool = True


@message(frozen=True, slots=True, kw_only=True)
class AddRaftVoterResponse:
    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterRequest:
    """cluster_id: Empty: whatever the cluster is."""

    cluster_id: str = ""
    voter_id: int
    voter_directory_id: bytes


@message(frozen=True, slots=True, kw_only=True)
class RemoveRaftVoterResponse:
    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class UpdateRaftVoterRequest:
    """A voter tells the leader where it listens and which levels of kraft.version its software supports.

    listeners: The internal listener comes first.
    min_kraft_version: Both inclusive.
    """

    current_leader_epoch: int
    voter_id: int
    voter_directory_id: bytes
    listeners: tuple[Endpoint, ...] = ()
    min_kraft_version: int
    max_kraft_version: int


@message(frozen=True, slots=True, kw_only=True)
class UpdateRaftVoterResponse:
    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class FetchSnapshotRequest:
    """One piece of a snapshot's bytes. A follower that is told to take a snapshot asks until it has all of them.

    replica_id: -1: a reader that the leader does not track.
    """

    replica_id: int
    replica_directory_id: bytes = b""
    current_leader_epoch: int
    snapshot_id: SnapshotId | None = None
    position: int
    max_bytes: int


@message(frozen=True, slots=True, kw_only=True)
class FetchSnapshotResponse:
    """size: Of the whole file.
    unaligned_records: From `position` on; they may begin and end inside a batch.
    """

    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1
    snapshot_id: SnapshotId | None = None
    size: int = -1
    position: int = -1
    unaligned_records: Buffer = b""
    node_endpoints: tuple[NodeEndpoint, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DescribeQuorumRequest:
    pass


@message(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponse:
    """kraft_version: Level of kraft.version. 0: the voters are in the configuration of the nodes; 1: they can be
    changed.
    voter_change: The change of the voters that is under way.
    """

    error_code: int = 0
    error_message: str = ""
    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    voters: tuple[QuorumReplica, ...] = ()
    observers: tuple[QuorumReplica, ...] = ()
    nodes: tuple[QuorumNode, ...] = ()
    cluster_id: str = ""
    kraft_version: int = 0
    voter_change: VoterChange | None = None


@message(frozen=True, slots=True, kw_only=True)
class VoterChange:
    """kind: "add", "remove", "update" or "upgrade".
    phase: "probe": the node is asked who it is; "catch-up": it copies the log; "commit": the change waits for a
    majority.
    log_end_offset: Of the node that is added; -1: it has not fetched from this leader.
    """

    kind: str
    voter_id: int
    voter_directory_id: bytes
    phase: str
    log_end_offset: int = -1
    leader_end_offset: int = -1


@message(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    """since_fetch_ms: Time since its last fetch, and since it was last caught up; -1: never. Durations, because
    clocks differ.
    last_fetch_wall_ms: The same as timestamps (KIP-836), by the wall clock of the broker that answers a client;
    -1: not known.
    """

    replica_id: int
    directory_id: bytes = b""
    log_end_offset: int = -1
    since_fetch_ms: int = -1
    since_caught_up_ms: int = -1
    last_fetch_wall_ms: int = -1
    last_caught_up_wall_ms: int = -1


@message(frozen=True, slots=True, kw_only=True)
class QuorumNode:
    node_id: int
    endpoints: tuple[Endpoint, ...] = ()
