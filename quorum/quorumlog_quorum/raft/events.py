"""The events of the core: its only input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    TransferLeadershipRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorumlog.records.control import Voters
from quorumlog_quorum.raft.log_state import EpochSpan
from quorumlog_quorum.raft.voters import VoterKey
from quorumlog_storage.rules.fetch_rule import SnapshotId

ReceivedRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | QuorumFetchRequest
    | FetchSnapshotRequest
    | DescribeQuorumRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
    | TransferLeadershipRequest
)
ReceivedResponse = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | QuorumFetchResponse
    | FetchSnapshotResponse
    | AddRaftVoterResponse
    | RemoveRaftVoterResponse
    | UpdateRaftVoterResponse
)


@dataclass(frozen=True, slots=True)
class Started:
    """The first event; it comes once."""


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A peer sent a request. One Reply effect with the same token answers it, now or later."""

    token: int
    message: ReceivedRequest


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """A peer answered our Send of this correlation.

    spans: the batches in a fetch response, whose checksums the driver has verified; None: the records are corrupt.
    """

    correlation: int
    message: ReceivedResponse
    spans: tuple[EpochSpan, ...] | None = ()


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """Our Send of this correlation gets no answer. delivered: False if the peer has certainly not received it."""

    correlation: int
    delivered: bool = True


@dataclass(frozen=True, slots=True)
class TimerFired:
    """`deadline_ms` has passed. What was received before it comes first, as events."""


@dataclass(frozen=True, slots=True)
class LogWritten:
    """The log is written up to end_offset (exclusive) and may be read up to there."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class LogSynced:
    """The log is durable up to end_offset (exclusive)."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class LogTruncated:
    """TruncateTo is done, and so is every append that was queued before it."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """The result of ReadForFetch. Empty: the log's start has passed the offset."""

    token: int
    records: Buffer


@dataclass(frozen=True, slots=True)
class SnapshotRead:
    """The result of ReadSnapshot. size: bytes of the whole file; -1: the file cannot be read."""

    token: int
    size: int
    data: Buffer


@dataclass(frozen=True, slots=True)
class SnapshotPieceStored:
    """size: bytes of this snapshot that are written."""

    snapshot: SnapshotId
    size: int


@dataclass(frozen=True, slots=True)
class SnapshotFinished:
    """The result of FinishSnapshot. is_intact: False if the bytes are not that snapshot; then they are gone.

    kraft_version, voters: what its header says about the voters; None: nothing.
    """

    snapshot: SnapshotId
    is_intact: bool
    kraft_version: int | None = None
    voters: Voters | None = None


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """This node has written a snapshot of its own committed records. It is durable."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class SnapshotLost:
    """The file of this snapshot cannot be used any more. It is not offered again."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class LogStartRaised:
    """Retention: the log begins where this snapshot ends from now on, and what is older is about to be removed."""

    oldest: SnapshotId


@dataclass(frozen=True, slots=True)
class AppendRequested:
    """Append these values as one batch, as the leader of `epoch`. `step` raises NotLeader if this node is not."""

    epoch: Epoch
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class PeerProvenDead:
    """The process of this node that led `epoch` has ended for certain.

    epoch: of the ProbeLeader effect. The same node can lead a later epoch by the time that the proof is there.
    """

    node_id: NodeId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class FoundCandidate:
    """Who answered a probe. min_version, max_version: of kraft.version, inclusive."""

    key: VoterKey
    is_controller: bool
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class CandidateProbed:
    """The result of ProbeCandidate. found: None if nobody answered."""

    number: int
    found: FoundCandidate | None


@dataclass(frozen=True, slots=True)
class UpgradeRequested:
    """Raise kraft.version to 1, as the leader: from then on the voters are in the log. Ends with KRaftVersionAnswered.

    It is refused until every voter has told that its software supports level 1. There is no way back.
    validate_only: answer as if, and append nothing.
    """

    token: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """Take part no longer. Ends with a ShutdownFinished effect. A leader hands over first.

    at_once: a leader resigns without waiting until a successor is ready. It may follow one that is not `at_once`.
    """

    at_once: bool = False


@dataclass(frozen=True, slots=True)
class ConfirmationRequested:
    """A read asks whether this node leads. One LeadershipConfirmed effect with the same token answers it."""

    token: int


RaftEvent = (
    Started
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | TimerFired
    | LogWritten
    | LogSynced
    | LogTruncated
    | RecordsRead
    | SnapshotRead
    | SnapshotPieceStored
    | SnapshotFinished
    | SnapshotTaken
    | SnapshotLost
    | LogStartRaised
    | AppendRequested
    | PeerProvenDead
    | CandidateProbed
    | UpgradeRequested
    | ConfirmationRequested
    | ShutdownRequested
)


class NotLeader(Exception):
    """This node does not lead the epoch of an append; nothing was appended."""

    def __init__(self, epoch: Epoch, leader_id: NodeId | None, current_epoch: Epoch) -> None:
        where = "no leader is known" if leader_id is None else f"node {leader_id} leads"
        super().__init__(f"not the leader of epoch {epoch}: in epoch {current_epoch} {where}")
        self.epoch, self.leader_id, self.current_epoch = epoch, leader_id, current_epoch
