"""What an operator may set of the controller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorumlog.settings.key import flag, number, setting
from quorumlog.settings.lifecycle import SESSION_TIMEOUT
from quorumlog.settings.types import MAX_INT


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Names are Kafka's, with `.` as `_`. Times in milliseconds.

    first_level: of metadata.version, where a new cluster is to begin at another one than the highest supported.
    first_records: encoded, which a new cluster's log has behind its levels: the users of `storage format`.
    max_batch_records, max_batch_bytes: of one batch of the log, which must allow as many bytes. A change with more than
    that becomes a transaction (transaction.py).
    decided_together: what this node's file has of DECIDED_TOGETHER. The log gets them in the first activation of all.
    max_slice_work: of an operation in one turn, in partitions looked at, some 2 us each (draft.py).
    """

    num_partitions: int = setting(
        number("num.partitions", 1, 1, "Partitions of a topic that is created without a number.")
    )
    default_replication_factor: int = setting(
        number("default.replication.factor", 1, 1, "Replicas of a topic that is created without a number.")
    )
    metadata_max_idle_interval_ms: int = setting(
        number(
            "metadata.max.idle.interval.ms", 500, 0, "Write a no-op record after this long without others; 0: never."
        )
    )
    max_slice_work: int = setting(
        number(
            "controller.max.slice.work", 5_000, 1, "Partitions that a controller handles before a pause. Not in Kafka."
        )
    )
    max_batch_records: int = setting(
        number("controller.max.batch.records", 10_000, 1, "Records in one batch of metadata; more are a transaction.")
    )
    auto_leader_rebalance_enable: bool = setting(
        flag(
            "auto.leader.rebalance.enable",
            True,
            "The controller gives leaderships back to the preferred replicas, which are the first ones.",
        )
    )
    leader_imbalance_check_interval_seconds: int = setting(
        number(
            "leader.imbalance.check.interval.seconds",
            300,
            1,
            "Time between two such passes over all partitions.",
            MAX_INT,
        )
    )
    leader_imbalance_per_broker_percentage: int = setting(
        number(
            "leader.imbalance.per.broker.percentage",
            10,
            0,
            "Most of a broker's preferred leaderships that may be elsewhere, in percent, before it gets them back.",
            100,
        )
    )
    unclean_recovery_timeout_ms: int = setting(
        number(
            "unclean.recovery.timeout.ms",
            300_000,
            0,
            "With `unclean.recovery.strategy=Balanced`: longest wait for the last known leader.",
            MAX_INT,
        )
    )
    broker_session_timeout_ms: int = setting(SESSION_TIMEOUT)
    access_rules: bool = False  # an authorizer is on, so rules may be made
    internal_listener: str = "INTERNAL"  # inter.broker.listener.name: where brokers are probed
    metadata_rest_interval_ms: int = 500  # at rest; the same as metadata_max_idle_interval_ms: it never rests
    commit_timeout_ms: int = 5_000  # longest wait for an operation's records to be committed
    min_insync_replicas: int = 1  # becomes a cluster-wide setting in the log when the first controller is active
    decided_together: Mapping[str, str] = field(default_factory=dict)
    probe_timeout_ms: int = 500
    max_batch_bytes: int = 8 << 20
    first_level: int | None = None
    first_records: tuple[bytes, ...] = field(default=(), repr=False)
