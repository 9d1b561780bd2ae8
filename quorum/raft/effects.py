"""What the core wants done, in the order in which it must happen.

The driver performs effects strictly one after the other and goes on after PersistQuorumState only when it is durable.
That order is the protocol: a vote is persisted before its Reply, and no Send of a fetch precedes the sync that it
acknowledges. Appends and truncations are queued in order; their completion comes back as an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorum.raft.log_state import EpochSpan
from quorum.raft.quorum_state import QuorumState
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)

Question = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | QuorumFetchRequest
Answer = VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse | QuorumFetchResponse | DescribeQuorumResponse


@dataclass(frozen=True, slots=True)
class PersistQuorumState:
    """Durable before any later effect."""

    state: QuorumState


@dataclass(frozen=True, slots=True)
class Send:
    """Ask a voter; tell ResponseReceived or RpcFailed with this correlation, exactly once."""

    to: NodeId
    message: Question
    correlation: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the request of this token. Whoever asked may be gone: then nothing happens."""

    token: int
    message: Answer


@dataclass(frozen=True, slots=True)
class ReadForFetch:
    """Read whole batches from offset, below upper_bound (exclusive), at least one; tell RecordsRead."""

    token: int
    offset: Offset
    max_bytes: int
    upper_bound: Offset


@dataclass(frozen=True, slots=True)
class AppendLeaderChange:
    """The control record that opens an epoch, alone in its batch at `offset`."""

    offset: Offset
    epoch: Epoch
    leader_id: NodeId
    voters: tuple[NodeId, ...]
    granting: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class AppendValues:
    """One batch of these values at `offset`."""

    offset: Offset
    epoch: Epoch
    values: Sequence[bytes]

    @property
    def end_offset(self) -> Offset:
        return self.offset + len(self.values)


@dataclass(frozen=True, slots=True)
class AppendFetched:
    """Batches as the leader sent them."""

    records: Buffer
    spans: tuple[EpochSpan, ...]


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Cut the log to end_offset (exclusive); tell LogTruncated."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """All below is committed. Never falls while the process lives, never past the own written end."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """leader_id: None while none is known; the node itself where it leads."""

    leader_id: NodeId | None
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class LeadershipClaimed:
    """This node leads, and its first record, the last below end_offset, is committed."""

    epoch: Epoch
    end_offset: Offset


@dataclass(frozen=True, slots=True)
class LeadershipLost:
    """Follows each time that this node stops to lead, claimed or not."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class ProbeLeader:
    """The way to the leader broke: find out whether its process is gone; tell PeerProvenDead, if so."""

    node_id: NodeId


@dataclass(frozen=True, slots=True)
class ShutdownFinished:
    """The leadership, if there was one, is handed over as well as could be."""


Effect = (
    PersistQuorumState
    | Send
    | Reply
    | ReadForFetch
    | AppendLeaderChange
    | AppendValues
    | AppendFetched
    | TruncateTo
    | HighWatermark
    | LeaderChanged
    | LeadershipClaimed
    | LeadershipLost
    | ProbeLeader
    | ShutdownFinished
)
