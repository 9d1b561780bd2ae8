"""Keys of transactions: Kafka's names and defaults. Joint ones are ours (decision 112)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorumlog.node_settings import MAX_INT, NodeKey, number, parse_bool, size
from quorumlog.topic_config import MAX_LONG
from quorumlog.transaction_config import DAY_MS, JointConfig, TransactionConfig, VerificationConfig
from quorumlog.transactions_topic import TransactionsTopicConfig


def _parse_two_phase(text: str) -> bool:
    if parse_bool(text):
        raise ValueError(
            "no producer may prepare a transaction for a coordinator outside of the cluster here; say false"
        )
    return False


TRANSACTION_KEYS = (
    number(
        "transaction.max.timeout.ms",
        900_000,
        1,
        "Longest time of a transaction that is no part of a joint one; a partition where one is open 5 minutes longer "
        "is counted as late.",
    ),
    number(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        1,
        "Time between two looks for transactions whose time is over; they are aborted.",
    ),
    number(
        "transactional.id.expiration.ms",
        604_800_000,
        1,
        "A transactional id is forgotten when its producer is silent for this long.",
        maximum=MAX_LONG,
    ),
    number(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        1,
        "Time between two looks for transactional ids to forget.",
    ),
    NodeKey(
        name="transaction.partition.verification.enable",
        parse=parse_bool,
        default="true",
        doc="A leader asks the coordinator before it begins a transaction for a producer that adds its partitions "
        "itself. Without that a late batch can begin one that nobody ends.",
    ),
    number(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        1,
        "How soon a leader that adds a partition to a transaction asks again while its coordinator is busy with it.",
    ),
    number("add.partitions.to.txn.retry.backoff.max.ms", 100, 0, "How long it asks again before the producer is told."),
    number(
        "transaction.partition.verification.max.waiting",
        10_000,
        1,
        "Most batches that wait on this broker until the coordinators of their transactions have answered.",
    ),
    NodeKey(
        name="transaction.two.phase.commit.enable",
        parse=_parse_two_phase,
        default="false",
        doc="Transactions that a coordinator outside of the cluster decides (KIP-939): false, they are not served.",
    ),
    number("transaction.coordinator.max.ids", 100_000, 1, "Most transactional ids in one partition of their topic."),
    number(
        "transaction.coordinator.max.waiting.calls",
        100_000,
        1,
        "Most calls of one partition of __transaction_state that wait for their records.",
    ),
    number(
        "transaction.coordinator.max.pending.markers",
        500,
        1,
        "Most markers that are under way from this broker's coordinators to one leader; more transactions wait behind.",
    ),
    number(
        "joint.max.timeout.ms",
        86_400_000,
        1,
        "Longest time of a part of a joint transaction, which many producers write and one record decides.",
    ),
    number(
        "joint.expiration.ms",
        7_776_000_000,
        1,
        "A joint group's last decision is forgotten so long after it, unless something of the group is open. A batch "
        "that comes again later than that is taken for a new one. That of a single batch is kept for a day at most.",
        maximum=MAX_LONG,
    ),
    number("joint.max.groups", 10_000, 1, "Most joint groups in one partition of __transaction_state."),
    number("transaction.state.log.num.partitions", 50, 1, "Partitions of __transaction_state when it is made."),
    number(
        "transaction.state.log.replication.factor",
        3,
        1,
        "Replicas of __transaction_state when it is made; until there are so many brokers no transaction can be begun.",
        maximum=32_767,
    ),
    number(
        "transaction.state.log.min.isr",
        2,
        1,
        "min.insync.replicas of __transaction_state when it is made, but not more than it has replicas.",
        maximum=MAX_INT,
    ),
    size("transaction.state.log.segment.bytes", 104_857_600, 1 << 20, "Segment size of __transaction_state then."),
)


def transaction_config(node: Mapping[str, Any]) -> TransactionConfig:
    """node: the values of all keys by name."""
    return TransactionConfig(
        max_timeout_ms=node["transaction.max.timeout.ms"],
        abort_interval_ms=node["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
        expiration_ms=node["transactional.id.expiration.ms"],
        remove_interval_ms=node["transaction.remove.expired.transaction.cleanup.interval.ms"],
        max_ids=node["transaction.coordinator.max.ids"],
        max_waiting_calls=node["transaction.coordinator.max.waiting.calls"],
        max_pending_markers=node["transaction.coordinator.max.pending.markers"],
        joint=JointConfig(
            max_timeout_ms=node["joint.max.timeout.ms"],
            expiration_ms=node["joint.expiration.ms"],
            single_expiration_ms=min(DAY_MS, node["joint.expiration.ms"]),
            max_groups=node["joint.max.groups"],
        ),
    )


def verification(node: Mapping[str, Any]) -> VerificationConfig:
    return VerificationConfig(
        enable=node["transaction.partition.verification.enable"],
        max_waiting=node["transaction.partition.verification.max.waiting"],
        retry_ms=node["add.partitions.to.txn.retry.backoff.ms"],
        max_wait_ms=node["add.partitions.to.txn.retry.backoff.max.ms"],
    )


def transactions_topic(node: Mapping[str, Any]) -> TransactionsTopicConfig:
    return TransactionsTopicConfig(
        num_partitions=node["transaction.state.log.num.partitions"],
        replication_factor=node["transaction.state.log.replication.factor"],
        min_isr=node["transaction.state.log.min.isr"],
        segment_bytes=node["transaction.state.log.segment.bytes"],
    )
