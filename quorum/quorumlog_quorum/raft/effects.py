"""What the core asks its driver to do, in the order in which it must happen.

The driver performs effects one after another. After PersistQuorumState it goes on only when the state is durable. This
order is the protocol: a vote is persisted before its Reply, and no fetch is sent before the sync that it acknowledges.
Appends and truncations are queued in order; their completion comes back as an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    TransferLeadershipResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorumlog_quorum.raft.log_state import EpochSpan
from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.voters import MembershipRecord
from quorumlog_storage.rules.fetch_rule import SnapshotId

VoterRequest = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
VoterResponse = AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse
SentRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | QuorumFetchRequest
    | FetchSnapshotRequest
    | VoterRequest
)
SentResponse = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | QuorumFetchResponse
    | FetchSnapshotResponse
    | DescribeQuorumResponse
    | VoterResponse
    | TransferLeadershipResponse
)


@dataclass(frozen=True, slots=True)
class PersistQuorumState:
    """Make the state durable before any later effect."""

    state: QuorumState


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request to a voter. Its end is one ResponseReceived or RequestFailed event with this correlation."""

    to: NodeId
    message: SentRequest
    correlation: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the request of this token. Nothing happens if its sender is gone."""

    token: int
    message: SentResponse


@dataclass(frozen=True, slots=True)
class ReadForFetch:
    """Read whole batches from offset up to upper_bound (exclusive), at least one. Ends with a RecordsRead event."""

    token: int
    offset: Offset
    max_bytes: int
    upper_bound: Offset


@dataclass(frozen=True, slots=True)
class AppendLeaderChange:
    """Append the control record that opens an epoch, alone in its batch at `offset`."""

    offset: Offset
    epoch: Epoch
    leader_id: NodeId
    voters: tuple[NodeId, ...]
    granting: tuple[NodeId, ...]

    @property
    def end_offset(self) -> Offset:
        return self.offset + 1


@dataclass(frozen=True, slots=True)
class AppendValues:
    """Append one batch of these values at `offset`."""

    offset: Offset
    epoch: Epoch
    values: Sequence[bytes]

    @property
    def end_offset(self) -> Offset:
        return self.offset + len(self.values)


@dataclass(frozen=True, slots=True)
class AppendControl:
    """Append control records about the voters, alone in their batch at `offset`."""

    offset: Offset
    epoch: Epoch
    members: tuple[MembershipRecord, ...]

    @property
    def end_offset(self) -> Offset:
        return self.offset + len(self.members)


@dataclass(frozen=True, slots=True)
class AppendFetched:
    """Append batches as the leader sent them."""

    records: Buffer
    spans: tuple[EpochSpan, ...]


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Cut the log to end_offset (exclusive). Ends with a LogTruncated event."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class ReadSnapshot:
    """Read bytes of a snapshot's file. Ends with a SnapshotRead event."""

    token: int
    snapshot: SnapshotId
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class StoreSnapshotPiece:
    """Write these bytes of a snapshot that is being fetched. Ends with a SnapshotPieceStored event.

    position: from the start of the file; 0 begins it anew.
    """

    snapshot: SnapshotId
    position: int
    data: Buffer


@dataclass(frozen=True, slots=True)
class FinishSnapshot:
    """All bytes are written: verify the file and give it its name, durably. Ends with a SnapshotFinished event."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class DropSnapshot:
    """The file that is being fetched is not needed any more. It may be finished already."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class RestartLog:
    """Remove all records and go on where the snapshot ends. Ends with a LogTruncated event."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """The snapshot stands for all records before its end: give it to the listeners, and then what follows it."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """All records below `offset` are committed. Never falls while the process lives, never passes the written end."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """leader_id: None while none is known; the node itself if it leads."""

    leader_id: NodeId | None
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class LeadershipClaimed:
    """This node leads, and the first record of its epoch, the last one below end_offset, is committed."""

    epoch: Epoch
    end_offset: Offset


@dataclass(frozen=True, slots=True)
class LeadershipLost:
    """This node leads `epoch` no longer, whether it had claimed the leadership or not."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class LeadershipConfirmed:
    """The end of one ConfirmationRequested event. confirmed: this node led, with all that is committed, after it."""

    token: int
    confirmed: bool


@dataclass(frozen=True, slots=True)
class HandOverBegun:
    """This leader of `epoch` takes no more appends. LeadershipLost follows, or LeadershipClaimed if it goes on."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class RecordsRegained:
    """The log holds again what it lacked at the start: from now on this voter votes."""


@dataclass(frozen=True, slots=True)
class ProbeLeader:
    """A request to the leader of `epoch` failed: find out whether its process ended. If so, PeerProvenDead follows."""

    node_id: NodeId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class ProbeCandidate:
    """Ask the node at this endpoint who it is: it is to become a voter. Ends with a CandidateProbed event.

    number: of the change, for the event.
    """

    number: int
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class MembershipSettled:
    """A committed voter set names this node's directory. Note it on disk: the node never joins again by itself."""


@dataclass(frozen=True, slots=True)
class KRaftVersionAnswered:
    """The end of an UpgradeRequested event with this token. text: why not, where error_code is not NONE."""

    token: int
    error_code: ErrorCode
    text: str


@dataclass(frozen=True, slots=True)
class ShutdownFinished:
    """If this node led, every voter acknowledged the resignation, or the time for that is over."""


RaftEffect = (
    PersistQuorumState
    | Send
    | Reply
    | ReadForFetch
    | AppendLeaderChange
    | AppendValues
    | AppendControl
    | AppendFetched
    | TruncateTo
    | ReadSnapshot
    | StoreSnapshotPiece
    | FinishSnapshot
    | DropSnapshot
    | RestartLog
    | SnapshotInstalled
    | HighWatermark
    | LeaderChanged
    | LeadershipClaimed
    | LeadershipLost
    | LeadershipConfirmed
    | HandOverBegun
    | RecordsRegained
    | ProbeLeader
    | ProbeCandidate
    | MembershipSettled
    | KRaftVersionAnswered
    | ShutdownFinished
)
