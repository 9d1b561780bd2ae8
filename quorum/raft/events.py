"""The events of the core: its only input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorum.raft.log_state import EpochSpan
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)

ReceivedRequest = (
    VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | QuorumFetchRequest | DescribeQuorumRequest
)
ReceivedResponse = VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | QuorumFetchResponse


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
    """`deadline_ms` has passed. What was received before it comes first, as events (RELIABILITY 6.2.20)."""


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
    """The result of ReadForFetch."""

    token: int
    records: Buffer


@dataclass(frozen=True, slots=True)
class AppendRequested:
    """Append these values as one batch, as the leader of `epoch`. `step` raises NotLeader if this node is not."""

    epoch: Epoch
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class PeerProvenDead:
    """The process of this node that led `epoch` has ended for certain (DESIGN 5).

    epoch: of the ProbeLeader effect. The same node can lead a later epoch by the time that the proof is there.
    """

    node_id: NodeId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """Take part no longer; a leader hands over first. Ends with a ShutdownFinished effect."""


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
    | AppendRequested
    | PeerProvenDead
    | ShutdownRequested
)


class NotLeader(Exception):
    """This node does not lead the epoch of an append; nothing was appended."""

    def __init__(self, epoch: Epoch, leader_id: NodeId | None, current_epoch: Epoch) -> None:
        where = "no leader is known" if leader_id is None else f"node {leader_id} leads"
        super().__init__(f"not the leader of epoch {epoch}: in epoch {current_epoch} {where}")
        self.epoch, self.leader_id, self.current_epoch = epoch, leader_id, current_epoch
