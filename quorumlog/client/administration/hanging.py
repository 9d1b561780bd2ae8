"""Transactions that hang: open on a partition for longer than any may be, while no coordinator will ever end them.

They hold back the last stable offset, so that nobody who reads committed records gets past them. Pure; the rule is that
of Kafka's TransactionsCommand (KIP-664).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorumlog.ids import TopicPartition
from quorumlog.messages.transactions import ActiveProducer, DescribedTransaction

MAX_TIMEOUT_MS = 900_000  # transaction.max.timeout.ms, unless brokers have another


class OpenTransaction(NamedTuple):
    partition: TopicPartition
    producer: ActiveProducer


class HangingTransaction(NamedTuple):
    """transactional_id: of a producer whose coordinator does not know of this partition; None: the id is gone."""

    partition: TopicPartition
    producer: ActiveProducer
    transactional_id: str | None


def open_for_long(
    producers: Mapping[TopicPartition, Iterable[ActiveProducer]], before_ms: int
) -> list[OpenTransaction]:
    """Those that wrote nothing since `before_ms` (ms since 1970), in the order of partitions."""
    return [
        OpenTransaction(partition, producer)
        for partition in sorted(producers)
        for producer in producers[partition]
        if producer.current_transaction_start_offset >= 0 and producer.last_timestamp_ms < before_ms
    ]


def hanging(
    candidates: Iterable[OpenTransaction], ids: Mapping[int, str], described: Mapping[str, DescribedTransaction]
) -> list[HangingTransaction]:
    """ids: transactional ids by producer id. described: by transactional id, those that exist."""
    found = []
    for partition, producer in candidates:
        name = ids.get(producer.producer_id)
        transaction = None if name is None else described.get(name)
        if transaction is None or not _lists(transaction, partition):
            found.append(HangingTransaction(partition, producer, name))
    return found


def _lists(transaction: DescribedTransaction, partition: TopicPartition) -> bool:
    return any(topic.name == partition[0] and partition[1] in topic.partitions for topic in transaction.topics)
