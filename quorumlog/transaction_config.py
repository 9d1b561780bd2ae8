"""Settings of the transaction coordinator, by Kafka's names with Kafka's defaults, and limits of our own."""

from __future__ import annotations

from dataclasses import dataclass, field

DAY_MS = 24 * 3_600_000
MAX_ID_BYTES = 2**15 - 1  # of a transactional id in UTF-8: its length in a record's key is an int16


@dataclass(frozen=True, slots=True, kw_only=True)
class JointConfig:
    """Of joint transactions. Times in ms. expiration_ms, single_expiration_ms: since a group's last decision;
    the second of a batch without a version, which is kept for a lost answer only. max_groups: of one partition of
    `__transaction_state`.
    """

    max_timeout_ms: int = DAY_MS  # joint.max.timeout.ms
    expiration_ms: int = 90 * DAY_MS  # joint.expiration.ms
    single_expiration_ms: int = DAY_MS
    max_groups: int = 10_000  # joint.max.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Times in ms. max_ids, max_waiting_calls: of one partition of `__transaction_state`. max_pending_markers: of all
    coordinators of a broker, to one leader. Kafka has no such limits."""

    max_timeout_ms: int = 900_000  # transaction.max.timeout.ms
    abort_interval_ms: int = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
    expiration_ms: int = 7 * DAY_MS  # transactional.id.expiration.ms
    remove_interval_ms: int = 3_600_000  # transaction.remove.expired.transaction.cleanup.interval.ms
    max_ids: int = 100_000  # transaction.coordinator.max.ids; 0.6 kB each while idle, with an id of 36 characters
    max_waiting_calls: int = 100_000  # transaction.coordinator.max.waiting.calls
    max_pending_markers: int = 500  # transaction.coordinator.max.pending.markers: two requests of the largest
    joint: JointConfig = field(default_factory=JointConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationConfig:
    """enable: ask about producers that add their partitions themselves (TV1). retry_ms, max_wait_ms: how often and how
    long a leader asks again while the producer's last transaction is being ended (TV2). max_waiting: batches that one
    broker holds, and questions that it has for the coordinators of their transactions."""

    enable: bool = True  # transaction.partition.verification.enable
    retry_ms: int = 20  # add.partitions.to.txn.retry.backoff.ms
    max_wait_ms: int = 100  # add.partitions.to.txn.retry.backoff.max.ms
    max_waiting: int = 10_000  # transaction.partition.verification.max.waiting
