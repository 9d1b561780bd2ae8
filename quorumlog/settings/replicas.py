"""Settings of the data plane. Names and defaults are Kafka's, if Kafka has the setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

REPLICA_LAG_TIME_MAX_MS_DEFAULT = 30_000  # replica.lag.time.max.ms
FETCH_WAIT_MAX_MS_DEFAULT = 500  # replica.fetch.wait.max.ms
FETCH_REST_MAX_MS_DEFAULT = 4_000  # at rest; with RPC_TIMEOUT_MS far below replica.lag.time.max.ms
FETCH_REST_LAG_PART = 4  # the longest wait at rest is at most one in so many of replica.lag.time.max.ms
FETCH_MIN_BYTES_DEFAULT = 1  # replica.fetch.min.bytes
FETCH_MAX_BYTES_DEFAULT = 1024 * 1024  # replica.fetch.max.bytes, of one partition
FETCH_RESPONSE_MAX_BYTES_DEFAULT = 10 * 1024 * 1024  # replica.fetch.response.max.bytes
FETCH_BACKOFF_MS_DEFAULT = 200  # replica.fetch.backoff.ms; Kafka waits 1,000
RPC_TIMEOUT_MS_DEFAULT = 5_000  # in addition to the wait that a fetch asks for
HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS_DEFAULT = 5_000  # replica.high.watermark.checkpoint.interval.ms
RECOVERY_CHECKPOINT_INTERVAL_MS_DEFAULT = 60_000  # log.flush.offset.checkpoint.interval.ms
TAIL_BYTES_DEFAULT = 64 * 1024 * 1024  # memory for recently appended batches, of all partitions together
ALTER_PARTITION_RETRY_MS_DEFAULT = 50
RETENTION_CHECK_INTERVAL_MS_DEFAULT = 300_000  # log.retention.check.interval.ms
FREE_SPACE_CHECK_INTERVAL_MS_DEFAULT = 500
INITIAL_TASK_DELAY_MS_DEFAULT = 30_000  # log.initial.task.delay.ms
PRODUCER_ID_EXPIRATION_MS_DEFAULT = 86_400_000  # producer.id.expiration.ms
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS_DEFAULT = 600_000  # producer.id.expiration.check.interval.ms
INDEX_CHECK_INTERVAL_MS_DEFAULT = 86_400_000  # log.index.check.interval.ms; not in Kafka
INDEX_CHECK_BYTES_PER_S_DEFAULT = 4 << 20  # log.index.check.max.bytes.per.second; not in Kafka

MAX_SLICE_WORK_DEFAULT = 100  # replicas made or changed by the metadata in one turn; making one takes some 50 us


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationConfig:
    replica_lag_time_max_ms: int = REPLICA_LAG_TIME_MAX_MS_DEFAULT
    fetch_wait_max_ms: int = FETCH_WAIT_MAX_MS_DEFAULT
    fetch_rest_max_ms: int = FETCH_WAIT_MAX_MS_DEFAULT  # the same as fetch_wait_max_ms: fetches never rest
    fetch_min_bytes: int = FETCH_MIN_BYTES_DEFAULT
    fetch_max_bytes: int = FETCH_MAX_BYTES_DEFAULT
    fetch_response_max_bytes: int = FETCH_RESPONSE_MAX_BYTES_DEFAULT
    fetch_backoff_ms: int = FETCH_BACKOFF_MS_DEFAULT
    rpc_timeout_ms: int = RPC_TIMEOUT_MS_DEFAULT
    high_watermark_checkpoint_interval_ms: int = HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS_DEFAULT
    recovery_checkpoint_interval_ms: int = RECOVERY_CHECKPOINT_INTERVAL_MS_DEFAULT
    tail_bytes: int = TAIL_BYTES_DEFAULT
    alter_partition_retry_ms: int = ALTER_PARTITION_RETRY_MS_DEFAULT
    retention_check_interval_ms: int = RETENTION_CHECK_INTERVAL_MS_DEFAULT
    initial_task_delay_ms: int = INITIAL_TASK_DELAY_MS_DEFAULT
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS_DEFAULT
    producer_id_expiration_check_interval_ms: int = PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS_DEFAULT
    index_check_interval_ms: int = INDEX_CHECK_INTERVAL_MS_DEFAULT  # negative: never
    index_check_bytes_per_s: int = INDEX_CHECK_BYTES_PER_S_DEFAULT  # of each log directory
    max_slice_work: int = MAX_SLICE_WORK_DEFAULT
    looks_inside_batches: bool = True  # record.validation=full; False: =header
    cordoned_directories: frozenset[str] = frozenset()  # cordoned.log.dirs: paths
    free_space_reserve_bytes: int | None = None  # log.dir.free.space.reserve.bytes
    free_space_check_interval_ms: int = FREE_SPACE_CHECK_INTERVAL_MS_DEFAULT
    topic_defaults: Mapping[str, str] = field(default_factory=dict)  # set for all topics by this broker's file
    internal_listener_name: str = "INTERNAL"  # inter.broker.listener.name: followers fetch there unless there is a
    replication_listener_name: str = ""  # replication.listener.name
