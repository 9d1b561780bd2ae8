"""Rows that `quorumlog transaction` shows, in the columns of Kafka's kafka-transactions and JOINT-GROUP. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from quorumlog.client.administration.hanging import HangingTransaction
    from quorumlog.client.administration.transactions import TransactionDescription, TransactionListing
    from quorumlog.ids import TopicPartition
    from quorumlog.messages.transactions import ActiveProducer, DescribedTransaction

LIST_COLUMNS = ("TRANSACTIONAL-ID", "COORDINATOR", "PRODUCER-ID", "STATE", "JOINT-GROUP")
DESCRIBE_COLUMNS = (
    "COORDINATOR", "TRANSACTIONAL-ID", "PRODUCER-ID", "PRODUCER-EPOCH", "STATE", "TIMEOUT-MS", "START-TIME",
    "DURATION-MS", "PARTITIONS", "JOINT-GROUP",
)  # fmt: skip
PRODUCER_COLUMNS = (
    "PRODUCER-ID", "PRODUCER-EPOCH", "COORDINATOR-EPOCH", "LAST-SEQUENCE", "LAST-TIME", "TRANSACTION-START-OFFSET",
)  # fmt: skip
HANGING_COLUMNS = (
    "TOPIC", "PARTITION", "PRODUCER-ID", "PRODUCER-EPOCH", "COORDINATOR-EPOCH", "START-OFFSET", "LAST-TIME",
    "DURATION-MS", "TRANSACTIONAL-ID",
)  # fmt: skip


class ListingRow(NamedTuple):
    """joint_group: whose child the id is; None: nobody's."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str
    joint_group: str | None


class DescriptionRow(NamedTuple):
    """start_time_ms: ms since 1970. duration_ms: since then. None: no transaction is open.

    joint_group: as `ListingRow`'s.
    """

    coordinator: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_time_ms: int | None
    duration_ms: int | None
    partitions: tuple[TopicPartition, ...]
    joint_group: str | None


class ProducerRow(NamedTuple):
    """None: there is none; the producer has no marker, no numbered batch, or no open transaction."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    last_sequence: int | None
    last_timestamp_ms: int | None
    transaction_start_offset: int | None


class HangingRow(NamedTuple):
    """duration_ms: since the producer's last record. transactional_id: None: no coordinator knows the producer."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp_ms: int
    duration_ms: int
    transactional_id: str | None


def listing_row(listing: TransactionListing) -> ListingRow:
    one = listing.transaction
    return ListingRow(one.transactional_id, listing.coordinator, one.producer_id, one.state, one.joint_group or None)


def description_row(description: TransactionDescription, now_ms: int) -> DescriptionRow:
    one = description.transaction
    started_ms = _known(one.transaction_start_time_ms)
    return DescriptionRow(
        description.coordinator,
        one.transactional_id,
        one.producer_id,
        one.producer_epoch,
        one.state,
        one.transaction_timeout_ms,
        started_ms,
        None if started_ms is None else max(0, now_ms - started_ms),
        partitions_of(one),
        one.joint_group or None,
    )


def producer_row(producer: ActiveProducer) -> ProducerRow:
    return ProducerRow(
        producer.producer_id,
        producer.producer_epoch,
        _known(producer.coordinator_epoch),
        _known(producer.last_sequence),
        _known(producer.last_timestamp_ms),
        _known(producer.current_transaction_start_offset),
    )


def hanging_row(one: HangingTransaction, now_ms: int) -> HangingRow:
    producer = one.producer
    return HangingRow(
        *one.partition,
        producer.producer_id,
        producer.producer_epoch,
        _known(producer.coordinator_epoch),
        producer.current_transaction_start_offset,
        producer.last_timestamp_ms,
        max(0, now_ms - producer.last_timestamp_ms),
        one.transactional_id,
    )


def partitions_of(described: DescribedTransaction) -> tuple[TopicPartition, ...]:
    return tuple([(topic.name, index) for topic in described.topics for index in topic.partitions])


def partition_documents(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": index} for topic, index in partitions]


def partition_text(partitions: Iterable[TopicPartition]) -> str:
    """orders-0,orders-2"""
    return ",".join(f"{topic}-{index}" for topic, index in sorted(partitions))


def utc_text(wall_ms: int | None) -> str | None:
    """2026-03-01T12:00:00.123Z"""
    if wall_ms is None:
        return None
    return datetime.fromtimestamp(wall_ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _known(number: int) -> int | None:
    return None if number < 0 else number
