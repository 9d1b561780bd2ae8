"""Settings of the transaction coordinator, by Kafka's names with Kafka's defaults, and limits of our own."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog.settings.config_key import MAX_LONG
from quorumlog.settings.key import NodeKey, number, parse_bool, setting

DAY_MS = 24 * 3_600_000
MAX_ID_BYTES = 2**15 - 1  # of a transactional id in UTF-8: its length in a record's key is an int16


@dataclass(frozen=True, slots=True, kw_only=True)
class JointConfig:
    """Of joint transactions. Times in ms. expiration_ms, single_expiration_ms: since a group's last decision;
    the second of a batch without a version, which is kept for a lost answer only. max_groups: of one partition of
    `__transaction_state`.
    """

    max_timeout_ms: int = setting(
        number(
            "joint.max.timeout.ms",
            86_400_000,
            1,
            "Longest time of a part of a joint transaction, which many producers write and one record decides.",
        )
    )
    expiration_ms: int = setting(
        number(
            "joint.expiration.ms",
            7_776_000_000,
            1,
            "A joint group's last decision is forgotten so long after it, unless something of the group is open. A "
            "batch "
            "that comes again later than that is taken for a new one. That of a single batch is kept for a day at "
            "most.",
            maximum=MAX_LONG,
        )
    )
    single_expiration_ms: int = DAY_MS
    max_groups: int = setting(
        number("joint.max.groups", 10_000, 1, "Most joint groups in one partition of __transaction_state.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Times in ms. max_ids, max_waiting_calls: of one partition of `__transaction_state`. max_pending_markers: of all
    coordinators of a broker, to one leader. Kafka has no such limits."""

    max_timeout_ms: int = setting(
        number(
            "transaction.max.timeout.ms",
            900_000,
            1,
            "Longest time of a transaction that is no part of a joint one; a partition where one is open 5 minutes "
            "longer "
            "is counted as late.",
        )
    )
    abort_interval_ms: int = setting(
        number(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms",
            10_000,
            1,
            "Time between two looks for transactions whose time is over; they are aborted.",
        )
    )
    expiration_ms: int = setting(
        number(
            "transactional.id.expiration.ms",
            604_800_000,
            1,
            "A transactional id is forgotten when its producer is silent for this long.",
            maximum=MAX_LONG,
        )
    )
    remove_interval_ms: int = setting(
        number(
            "transaction.remove.expired.transaction.cleanup.interval.ms",
            3_600_000,
            1,
            "Time between two looks for transactional ids to forget.",
        )
    )
    # one takes 0.6 kB while idle, with an id of 36 characters
    max_ids: int = setting(
        number("transaction.coordinator.max.ids", 100_000, 1, "Most transactional ids in one partition of their topic.")
    )
    max_waiting_calls: int = setting(
        number(
            "transaction.coordinator.max.waiting.calls",
            100_000,
            1,
            "Most calls of one partition of __transaction_state that wait for their records.",
        )
    )
    # two requests of the largest
    max_pending_markers: int = setting(
        number(
            "transaction.coordinator.max.pending.markers",
            500,
            1,
            "Most markers that are under way from this broker's coordinators to one leader; more transactions wait "
            "behind.",
        )
    )
    joint: JointConfig = field(default_factory=JointConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationConfig:
    """enable: ask about producers that add their partitions themselves (TV1). retry_ms, max_wait_ms: how often and how
    long a leader asks again while the producer's last transaction is being ended (TV2). max_waiting: batches that one
    broker holds, and questions that it has for the coordinators of their transactions."""

    enable: bool = setting(
        NodeKey(
            name="transaction.partition.verification.enable",
            parse=parse_bool,
            default="true",
            doc="A leader asks the coordinator before it begins a transaction for a producer that adds its partitions "
            "itself. Without that a late batch can begin one that nobody ends.",
        )
    )
    retry_ms: int = setting(
        number(
            "add.partitions.to.txn.retry.backoff.ms",
            20,
            1,
            "How soon a leader that adds a partition to a transaction asks again while its coordinator is busy with "
            "it.",
        )
    )
    max_wait_ms: int = setting(
        number(
            "add.partitions.to.txn.retry.backoff.max.ms", 100, 0, "How long it asks again before the producer is told."
        )
    )
    max_waiting: int = setting(
        number(
            "transaction.partition.verification.max.waiting",
            10_000,
            1,
            "Most batches that wait on this broker until the coordinators of their transactions have answered.",
        )
    )
