"""What a partition is told, and what it tells its shell to do. The vocabulary of `partition.py`.

The two events that come with every request are tuples: they are made in half the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from broker.partition.isr_state import Isr
from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, Epoch, NodeId, Offset
from storage.log_config import NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChanged:
    """The partition as the committed metadata has it. leader: -1 none."""

    leader: NodeId
    leader_epoch: Epoch
    partition_epoch: int
    replicas: tuple[NodeId, ...]
    isr: Isr


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReady:
    """The log is open and all that was queued before this leadership is in it. Ends are exclusive.

    epoch_start: where a leader's log has assigned `leader_epoch`, durably by now; -1 of a follower.
    """

    leader_epoch: Epoch
    log_start: Offset
    end_offset: Offset
    synced_end: Offset
    epoch_start: Offset = -1
    high_watermark: Offset = 0  # from the checkpoint where the log was just opened, else ignored


class LogAdvanced(NamedTuple):
    """What the log holds now, and how much of it is on disk. Exclusive ends."""

    end_offset: Offset
    synced_end: Offset


@dataclass(frozen=True, slots=True)
class LogTruncated:
    """The log was cut, or (start > previous end) emptied and started again at log_start."""

    log_start: Offset
    end_offset: Offset


@dataclass(frozen=True, slots=True)
class LogStartMoved:
    """Records before it are gone, durably: deleted at the leader, or here because the leader said so."""

    log_start: Offset


@dataclass(frozen=True, slots=True)
class LogFailed:
    """The directory is offline: this replica neither leads nor follows until the process starts again."""


class FollowerFetched(NamedTuple):
    """A fetch of the current leader epoch, from a position that is on the leader's log. log_start: -1: not said."""

    replica_id: NodeId
    broker_epoch: BrokerEpoch
    fetch_offset: Offset
    log_start: Offset = -1


@dataclass(frozen=True, slots=True)
class FollowerHeard:
    """Fetches up to `at_ms` did not name this partition: the follower stood at the leader's end, as it had said."""

    replica_id: NodeId
    broker_epoch: BrokerEpoch
    at_ms: int


@dataclass(frozen=True, slots=True)
class LeaderToldHighWatermark:
    """Of an answer whose records have been appended here."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """Brokers that may be in an ISR: registered, unfenced, not shutting down; with their broker epochs."""

    eligible: Mapping[NodeId, BrokerEpoch]


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """durable: the topic's `durability` is `synced`, so that only synced ends count. flush_messages: the topic's."""

    min_isr: int
    durable: bool
    flush_messages: int = NEVER


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: look for followers that fell behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeIsr:
    """Effect: ask the controller for this ISR. members: (id, broker epoch of its fetches, -1 where none was seen)."""

    leader_epoch: Epoch
    partition_epoch: int
    members: tuple[tuple[NodeId, BrokerEpoch], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrAnswered:
    """The controller's answer to `proposal`; the other fields count where error is NONE."""

    proposal: ProposeIsr
    error: ErrorCode
    leader_epoch: Epoch = -1
    partition_epoch: int = -1
    isr: Isr = ()


@dataclass(frozen=True, slots=True)
class LeadershipLost:
    """Effect: whoever waits here as at the leader is told NOT_LEADER_OR_FOLLOWER now."""


@dataclass(frozen=True, slots=True)
class TakeLeadership:
    """Effect: assign the epoch at the log's end behind all that is queued, durably; then tell LogReady."""

    leader_epoch: Epoch


@dataclass(frozen=True, slots=True)
class Follow:
    """Effect: stop fetching for an older epoch; once all that is queued is in the log tell LogReady and fetch."""

    leader: NodeId  # -1: none; do not fetch
    leader_epoch: Epoch


@dataclass(frozen=True, slots=True)
class HighWatermarkMoved:
    """Effect: complete what waited for it."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class LowWatermarkMoved:
    """Effect: complete what waited for records to be gone from every live replica. Exclusive end of what is gone."""

    low_watermark: Offset


Event = (
    MetadataChanged
    | LogReady
    | LogAdvanced
    | LogTruncated
    | LogStartMoved
    | LogFailed
    | FollowerFetched
    | FollowerHeard
    | LeaderToldHighWatermark
    | BrokersChanged
    | SettingsChanged
    | Tick
    | IsrAnswered
)
Effect = ProposeIsr | LeadershipLost | TakeLeadership | Follow | HighWatermarkMoved | LowWatermarkMoved
