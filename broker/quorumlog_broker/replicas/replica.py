"""One replica on this broker: its core, its log, and what its leader has queued but not written yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quorumlog.configs.topic import TopicConfig
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, NodeId, Offset, Uuid, show_uuid
from quorumlog.messages.common import CurrentLeader
from quorumlog_broker.logdirs.hosted_replica import Exchange
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_broker.partition.events import PartitionEvent
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.partition.partition import Partition
from quorumlog_broker.partition.producer_sequences import ProducerSequences
from quorumlog_broker.partition.tail import Tail
from quorumlog_broker.replicas.traffic import PartitionTraffic
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import MIN_SEGMENT_BYTES, LogConfig


@dataclass(slots=True, eq=False)
class Replica:
    """queue: of the directory it lies in; None while that is not online.

    assigned: the directory that the metadata names. partition_log: set by the directory's worker when it has opened the
    log; changed by jobs of that worker only. log: its log, once the loop knows of it. next_offset: the base offset of
    the next produced batch, at or past log.end_offset because appends wait in the queue; valid while this replica
    leads. series: of those appends; when one of them fails, all behind it do, and the next ones begin another series.
    sequences: the producers of those appends. exchange: of the log for its copy in another directory; None: none is
    under way. traffic: what has passed here while this broker led.
    """

    topic: str
    key: PartitionKey
    core: Partition
    config: TopicConfig
    tail: Tail
    queue: DirectoryQueue | None
    assigned: Uuid
    partition_log: PartitionLog | None = None
    log: Log | None = None
    next_offset: Offset = 0
    series: int = 0
    sequences: ProducerSequences = field(default_factory=ProducerSequences)
    exchange: Exchange | None = None
    traffic: PartitionTraffic = field(default_factory=PartitionTraffic)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.key[1]}"

    @property
    def is_frozen(self) -> bool:
        """Its log is being exchanged: it is read, and no change of it may be queued
        (quorumlog_broker/moves/exchange.py).
        """
        return self.exchange is not None

    @property
    def can_be_opened(self) -> bool:
        """Its directory is online."""
        return self.queue is not None and self.queue.is_usable

    @property
    def is_usable(self) -> bool:
        """Its log may be read and written: it has not failed, and the directory takes work."""
        return not self.core.failed and self.can_be_opened

    @property
    def current_leader(self) -> CurrentLeader:
        return CurrentLeader(leader_id=self.core.leader, leader_epoch=self.core.leader_epoch)

    def leading(self, epoch: Epoch | None = None) -> Log:
        """The log, if this replica leads (in `epoch`, if given). Raises ApiError."""
        log = self.readable(epoch)
        if not self.core.is_leader:
            raise self._not_serving("lead")
        return log

    def readable(self, epoch: Epoch | None) -> Log:
        """The log, if this replica leads or follows (in `epoch`, if given). Raises ApiError as `leading`."""
        if not self.is_usable:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {self.name} is offline")
        if epoch is not None and epoch < self.core.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, f"epoch {epoch} < {self.core.leader_epoch} of {self.name}")
        if epoch is not None and epoch > self.core.leader_epoch:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"epoch {epoch} > {self.core.leader_epoch} of {self.name}")
        if self.log is None or not (self.core.is_leader or self.core.is_follower):
            raise self._not_serving("lead or follow")
        return self.log

    def _not_serving(self, does: str) -> ApiError:
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.core.node_id} does not {does} {self.name} now")


Step = Callable[[Replica, PartitionEvent], None]  # `PartitionStepper.step`


def new_core(node_id: NodeId, config: TopicConfig, lag_time_max_ms: int) -> Partition:
    return Partition(
        node_id,
        min_isr=config.min_insync_replicas,
        durable=config.synced,
        flush_messages=config.flush_messages,
        lag_time_max_ms=lag_time_max_ms,
    )


def log_config(config: TopicConfig) -> LogConfig:
    """The last segment is never compacted, so one that `max.compaction.lag.ms` concerns is closed in time (KIP-354)."""
    is_compacted = "compact" in config.cleanup_policy
    return LogConfig(
        segment_bytes=max(MIN_SEGMENT_BYTES, config.segment_bytes),  # `internal.segment.bytes` has no lower limit
        segment_ms=min(config.segment_ms, config.max_compaction_lag_ms) if is_compacted else config.segment_ms,
        segment_jitter_ms=config.segment_jitter_ms,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=max(1, config.index_interval_bytes),
        preallocate=config.preallocate,
        durable=config.synced,
        flush_messages=config.flush_messages,
        flush_ms=config.flush_ms,
        delete_delay_ms=config.file_delete_delay_ms,
        remembers_producers=True,
    )


def topic_text(topic: Uuid | str) -> str:
    return topic if isinstance(topic, str) else show_uuid(topic)
