"""Settings of the data plane. Names and defaults are Kafka's, if Kafka has the setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorumlog.node_settings import number, setting, size
from quorumlog.topic_config import MAX_LONG

FETCH_WAIT_MAX_MS_DEFAULT = 500  # replica.fetch.wait.max.ms
FETCH_REST_MAX_MS_DEFAULT = 4_000  # at rest; with RPC_TIMEOUT_MS far below replica.lag.time.max.ms
FETCH_REST_LAG_PART = 4  # the longest wait at rest is at most one in so many of replica.lag.time.max.ms
FETCH_BACKOFF_MS_DEFAULT = 200  # replica.fetch.backoff.ms; Kafka waits 1,000
RPC_TIMEOUT_MS_DEFAULT = 5_000  # in addition to the wait that a fetch asks for
ALTER_PARTITION_RETRY_MS_DEFAULT = 50
FREE_SPACE_CHECK_INTERVAL_MS_DEFAULT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationConfig:
    # of one turn; making a replica takes some 50 us
    max_slice_work: int = setting(
        number("broker.max.slice.work", 100, 1, "Replicas that a broker changes before a pause. Not in Kafka.")
    )
    replica_lag_time_max_ms: int = setting(
        number("replica.lag.time.max.ms", 30_000, 1, "A replica that is behind for longer leaves the in-sync set.")
    )
    fetch_wait_max_ms: int = setting(
        number("replica.fetch.wait.max.ms", 500, 0, "How long a follower's fetch waits for data.")
    )
    fetch_min_bytes: int = setting(number("replica.fetch.min.bytes", 1, 0, "Bytes that a follower's fetch waits for."))
    fetch_max_bytes: int = setting(
        size("replica.fetch.max.bytes", 1 << 20, 1, "Largest share of one partition in a follower's fetch.")
    )
    fetch_response_max_bytes: int = setting(
        size("replica.fetch.response.max.bytes", 10 << 20, 1, "Largest response to a follower's fetch.")
    )
    high_watermark_checkpoint_interval_ms: int = setting(
        number(
            "replica.high.watermark.checkpoint.interval.ms",
            5_000,
            100,
            "Time between two notes of the high watermarks.",
        )
    )
    recovery_checkpoint_interval_ms: int = setting(
        number(
            "log.flush.offset.checkpoint.interval.ms",
            60_000,
            100,
            "Time between two notes of the recovery points, of partitions and of the metadata log.",
        )
    )
    retention_check_interval_ms: int = setting(
        number(
            "log.retention.check.interval.ms", 300_000, 1, "Time between two checks for segments that a topic lets go."
        )
    )
    initial_task_delay_ms: int = setting(
        number("log.initial.task.delay.ms", 30_000, 0, "Time from the start to the first of these checks.")
    )
    index_check_interval_ms: int = setting(
        number(
            "log.index.check.interval.ms",
            86_400_000,
            -1,
            "Time between two checks of all closed segments and their indexes in the background; -1: none. Not in "
            "Kafka.",
            maximum=MAX_LONG,
        )
    )
    index_check_bytes_per_s: int = setting(
        size(
            "log.index.check.max.bytes.per.second",
            4 << 20,
            1,
            "Most bytes that this check reads in a second, in each log directory. Not in Kafka.",
        )
    )
    tail_bytes: int = setting(
        size("log.tail.bytes", 64 << 20, 0, "Memory for the newest batches of all partitions. Not in Kafka.")
    )
    producer_id_expiration_ms: int = setting(
        number(
            "producer.id.expiration.ms", 86_400_000, 1, "A partition forgets a producer that is silent for this long."
        )
    )
    producer_id_expiration_check_interval_ms: int = setting(
        number("producer.id.expiration.check.interval.ms", 600_000, 1, "Time between two looks for such producers.")
    )
    fetch_rest_max_ms: int = FETCH_WAIT_MAX_MS_DEFAULT  # the same as fetch_wait_max_ms: fetches never rest
    fetch_backoff_ms: int = FETCH_BACKOFF_MS_DEFAULT
    rpc_timeout_ms: int = RPC_TIMEOUT_MS_DEFAULT
    alter_partition_retry_ms: int = ALTER_PARTITION_RETRY_MS_DEFAULT
    looks_inside_batches: bool = True  # record.validation=full; False: =header
    cordoned_directories: frozenset[str] = frozenset()  # cordoned.log.dirs: paths
    free_space_reserve_bytes: int | None = None  # log.dir.free.space.reserve.bytes
    free_space_check_interval_ms: int = FREE_SPACE_CHECK_INTERVAL_MS_DEFAULT
    topic_defaults: Mapping[str, str] = field(default_factory=dict)  # set for all topics by this broker's file
    internal_listener_name: str = "INTERNAL"  # inter.broker.listener.name: followers fetch there unless there is a
    replication_listener_name: str = ""  # replication.listener.name
