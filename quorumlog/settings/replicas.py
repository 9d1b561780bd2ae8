"""Settings of the data plane. Names and defaults are Kafka's, if Kafka has the setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorumlog.settings.config_key import MAX_LONG
from quorumlog.settings.key import NodeKey, number, parse_bytes, setting, size, text, word

_FETCH_WAIT_MAX_MS = 500
FETCH_REST_MAX_MS_DEFAULT = 4_000  # at rest; with the time-out of a call far below replica.lag.time.max.ms
FETCH_REST_LAG_PART = 4  # the longest wait at rest is at most one in so many of replica.lag.time.max.ms
_FULL = "full"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationConfig:
    free_space_reserve_bytes: int | None = setting(
        NodeKey(
            name="log.dir.free.space.reserve.bytes",
            parse=parse_bytes,
            default=None,
            optional=True,
            minimum=0,
            doc="With less free space than this, producers are refused; 0: never. Not set: 1 GiB, or 5 % of the file "
            "system if that is less. Not in Kafka.",
        )
    )
    # of one turn; making a replica takes some 50 us
    max_slice_work: int = setting(
        number("broker.max.slice.work", 100, 1, "Replicas that a broker changes before a pause. Not in Kafka.")
    )
    replica_lag_time_max_ms: int = setting(
        number("replica.lag.time.max.ms", 30_000, 1, "A replica that is behind for longer leaves the in-sync set.")
    )
    fetch_wait_max_ms: int = setting(
        number("replica.fetch.wait.max.ms", _FETCH_WAIT_MAX_MS, 0, "How long a follower's fetch waits for data.")
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
    looks_inside_batches: bool = setting(
        word(
            "record.validation",
            _FULL,
            "What is looked at before a batch is stored: full (every record) or header (faster, unsafe). Not in Kafka.",
            choices=(_FULL, "header"),
        ),
        made=lambda depth: depth == _FULL,
    )
    replica_selector: str | None = setting(
        NodeKey(
            name="replica.selector.class",
            parse=text,
            default=None,
            optional=True,
            choices=(LEADER_SELECTOR, RACK_AWARE_SELECTOR),
            doc="From which replica a consumer that names its rack reads: not set or Kafka's LeaderSelector, the "
            "leader; Kafka's RackAwareReplicaSelector, an in-sync one in that rack (KIP-392). No class is loaded.",
        )
    )
    fetch_rest_max_ms: int = _FETCH_WAIT_MAX_MS  # the same as fetch_wait_max_ms: fetches never rest
    fetch_backoff_ms: int = 200  # Kafka's replica.fetch.backoff.ms is 1,000
    rpc_timeout_ms: int = 5_000  # in addition to the wait that a fetch asks for
    alter_partition_retry_ms: int = 50
    cordoned_directories: frozenset[str] = frozenset()  # cordoned.log.dirs: paths
    free_space_check_interval_ms: int = 500
    topic_defaults: Mapping[str, str] = field(default_factory=dict)  # set for all topics by this broker's file
    internal_listener_name: str = "INTERNAL"  # inter.broker.listener.name: followers fetch there unless there is a
    replication_listener_name: str = ""  # replication.listener.name
