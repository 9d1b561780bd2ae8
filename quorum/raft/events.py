"""What happens to the core: everything it can ever be told."""

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

Request = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | QuorumFetchRequest | DescribeQuorumRequest
Response = VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | QuorumFetchResponse


@dataclass(frozen=True, slots=True)
class Started:
    """The first event, once."""


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A peer asks. token: names the answer in the one Reply that follows, now or later."""

    token: int
    message: Request


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """A peer answers our Send of this correlation.

    spans: of the records in a fetch response, checked (whole batches, checksums) by the driver; None: they are corrupt.
    """

    correlation: int
    message: Response
    spans: tuple[EpochSpan, ...] | None = ()


@dataclass(frozen=True, slots=True)
class RpcFailed:
    """Our Send of this correlation has no answer. delivered: False if the peer has certainly not seen it."""

    correlation: int
    delivered: bool = True


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time of `deadline_ms` has come. What was received by then has been told before (RELIABILITY 6.2.20)."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The log is written up to end_offset (exclusive); readers may see it."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class Synced:
    """The log is durable up to end_offset (exclusive)."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class LogTruncated:
    """TruncateTo is carried out, and so is every append that was asked for before it."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """The answer to ReadForFetch."""

    token: int
    records: Buffer


@dataclass(frozen=True, slots=True)
class AppendAsked:
    """The owner of the leadership of `epoch` wants these values appended as one batch. Raises NotLeader."""

    epoch: Epoch
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class PeerProvenDead:
    """The process that ran this node is certainly gone (DESIGN 5)."""

    node_id: NodeId


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """Stop taking part; a leader hands over first. Ends with ShutdownFinished."""


Event = (
    Started
    | RequestReceived
    | ResponseReceived
    | RpcFailed
    | TimerFired
    | Appended
    | Synced
    | LogTruncated
    | RecordsRead
    | AppendAsked
    | PeerProvenDead
    | ShutdownAsked
)


class NotLeader(Exception):
    """This node does not lead that epoch; nothing was appended."""

    def __init__(self, epoch: Epoch, leader_id: NodeId | None, current_epoch: Epoch) -> None:
        where = "no leader is known" if leader_id is None else f"node {leader_id} leads"
        super().__init__(f"not the leader of epoch {epoch}: in epoch {current_epoch} {where}")
        self.epoch, self.leader_id, self.current_epoch = epoch, leader_id, current_epoch
