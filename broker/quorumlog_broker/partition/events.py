"""The events and effects of the partition core (`partition.py`).

`FollowerFetched` and `LogAdvanced` come with every request. They are tuples, because a tuple is made in half the time
of a dataclass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, Epoch, NodeId, Offset
from quorumlog_broker.partition.isr_state import Isr
from quorumlog_storage.producers.transactions import STABLE, Unstable
from quorumlog_storage.segment.log_config import NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChanged:
    """The partition as the committed metadata has it.

    leader: -1 means none. It is this broker only if the controller gave the leadership to this process of it.
    elr: replicas outside the ISR that may lead without loss once it is empty (KIP-966).
    """

    leader: NodeId
    leader_epoch: Epoch
    partition_epoch: int
    replicas: tuple[NodeId, ...]
    isr: Isr
    elr: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReady:
    """The log is open, and everything that was queued before this leadership is in it. Ends are exclusive.

    leader_epoch: -1 if the log was only opened, before this process of the broker was registered.
    epoch_start: the offset at which a leader's log has assigned `leader_epoch`, durably; -1 for a follower.
    """

    leader_epoch: Epoch
    log_start: Offset
    end_offset: Offset
    synced_end: Offset
    epoch_start: Offset = -1
    high_watermark: Offset = 0  # from the checkpoint; used only the first time, when the log was just opened
    unstable: Unstable = STABLE  # of the records before end_offset


class LogAdvanced(NamedTuple):
    """What the log holds now, and how much of it is on disk. Both ends are exclusive.

    unstable: the transactions among the records before end_offset.
    """

    end_offset: Offset
    synced_end: Offset
    unstable: Unstable = STABLE


@dataclass(frozen=True, slots=True)
class LogTruncated:
    """The log was truncated; or emptied, or replaced by an empty one, and goes on at log_start.

    log_start: lower than before only where the old log was set aside, because its leader's begins earlier.
    """

    log_start: Offset
    end_offset: Offset
    unstable: Unstable = STABLE


@dataclass(frozen=True, slots=True)
class LogStartMoved:
    """Records before log_start were deleted durably: by a client at the leader, or here as the leader's answer says."""

    log_start: Offset


@dataclass(frozen=True, slots=True)
class LogFailed:
    """The log cannot be used any more: its directory is offline, or the replica was taken from this broker.

    This replica does not lead or follow again until LogRecovered, or until the process restarts.
    """


@dataclass(frozen=True, slots=True)
class LogRecovered:
    """A later generation of the directory has verified it from disk: the log may be opened again."""


class FollowerFetched(NamedTuple):
    """A fetch in the current leader epoch, from a position that is on the leader's log. log_start: -1 means unknown."""

    replica_id: NodeId
    broker_epoch: BrokerEpoch
    fetch_offset: Offset
    log_start: Offset = -1


@dataclass(frozen=True, slots=True)
class UnnamedFetch:
    """A fetch of the follower's session did not name this partition: at `at_ms` it was still at the leader's end."""

    replica_id: NodeId
    broker_epoch: BrokerEpoch
    at_ms: int


@dataclass(frozen=True, slots=True)
class LeaderHighWatermark:
    """The high watermark of a fetch response whose records have been appended here."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """The brokers that may be in an ISR, with their epochs: registered, unfenced and not shutting down."""

    eligible: Mapping[NodeId, BrokerEpoch]


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The log has these settings. durable: the topic's `durability` is `synced`, so that only synced ends count."""

    durable: bool
    flush_messages: int = NEVER


@dataclass(frozen=True, slots=True)
class MinIsrChanged:
    """The metadata has another `min.insync.replicas`.

    A higher one comes before any change of the partition that the controller has judged by it, a lower one after those
    that are older: at no time does a leader commit by less than the controller counts on (decision 83).
    """

    min_isr: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: check whether a follower has fallen behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeIsr:
    """Effect: send AlterPartition with this ISR to the controller.

    members: (id, broker epoch of its last fetch); the epoch is -1 if no fetch was seen, and for the leader itself.
    """

    leader_epoch: Epoch
    partition_epoch: int
    members: tuple[tuple[NodeId, BrokerEpoch], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrAnswered:
    """The controller's answer to `proposal`. The other fields count only if error is NONE."""

    proposal: ProposeIsr
    error: ErrorCode
    leader_epoch: Epoch = -1
    partition_epoch: int = -1
    isr: Isr = ()


@dataclass(frozen=True, slots=True)
class LeaderElected:
    """Effect: this replica leads in `leader_epoch` and its log is ready to be written. Follows the high watermark."""

    leader_epoch: Epoch


@dataclass(frozen=True, slots=True)
class LeadershipLost:
    """Effect: complete every operation that waits here for the leader with NOT_LEADER_OR_FOLLOWER.

    Comes also if the leadership ended before its LeaderElected.
    """


@dataclass(frozen=True, slots=True)
class TakeLeadership:
    """Effect: behind all queued work, assign the epoch at the log's end, durably; then answer with LogReady."""

    leader_epoch: Epoch


@dataclass(frozen=True, slots=True)
class Follow:
    """Effect: stop fetching for an older epoch; once all queued work is in the log, answer with LogReady and fetch."""

    leader: NodeId  # -1 means none: do not fetch
    leader_epoch: Epoch


@dataclass(frozen=True, slots=True)
class WentOffline:
    """Effect: stop all work for this replica and complete every operation that waits for it."""


@dataclass(frozen=True, slots=True)
class HighWatermarkMoved:
    """Effect: complete the operations that waited for it."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class LowWatermarkMoved:
    """Effect: complete the operations that waited until every replica that counts had deleted the records below it."""

    low_watermark: Offset


PartitionEvent = (
    MetadataChanged
    | LogReady
    | LogAdvanced
    | LogTruncated
    | LogStartMoved
    | LogFailed
    | LogRecovered
    | FollowerFetched
    | UnnamedFetch
    | LeaderHighWatermark
    | BrokersChanged
    | SettingsChanged
    | MinIsrChanged
    | Tick
    | IsrAnswered
)
PartitionEffect = (
    ProposeIsr
    | LeaderElected
    | LeadershipLost
    | TakeLeadership
    | Follow
    | WentOffline
    | HighWatermarkMoved
    | LowWatermarkMoved
)
