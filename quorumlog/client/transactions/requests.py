"""The requests of a transactional producer, from what its machine knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from quorumlog.client.batches.numbering import Identity
from quorumlog.client.cluster.metadata_cache import NO_ID
from quorumlog.client.group_metadata import GroupMetadata
from quorumlog.ids import TopicPartition
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitTopic
from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TransactionToExtend,
    TransactionTopic,
    TxnOffsetCommitRequest,
)


class KnownProducer(Protocol):
    """level: of the feature transaction.version."""

    transactional_id: str
    timeout_ms: int
    level: int
    identity: Identity | None


def init_producer(producer: KnownProducer) -> InitProducerIdRequest:
    """With the epoch that the producer has, if it has one: then the answer is refused if it is not the newest."""
    has = producer.identity or Identity(-1, -1)
    return InitProducerIdRequest(
        transactional_id=producer.transactional_id,
        transaction_timeout_ms=producer.timeout_ms,
        producer_id=has.producer_id,
        producer_epoch=has.epoch,
    )


def add_partitions(producer: KnownProducer, partitions: Iterable[TopicPartition]) -> AddPartitionsToTxnRequest:
    producer_id, epoch = _identity(producer)
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    one = TransactionToExtend(
        transactional_id=producer.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=tuple(TransactionTopic(name=name, partitions=tuple(found)) for name, found in by_topic.items()),
        transaction_version=producer.level,
    )
    return AddPartitionsToTxnRequest(transactions=(one,))


def add_offsets(producer: KnownProducer, group_id: str) -> AddOffsetsToTxnRequest:
    producer_id, epoch = _identity(producer)
    return AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id=group_id
    )


def commit_offsets(
    producer: KnownProducer, group: GroupMetadata, offsets: Mapping[TopicPartition, int]
) -> TxnOffsetCommitRequest:
    producer_id, epoch = _identity(producer)
    by_topic: dict[str, list[OffsetCommitPartition]] = {}
    for (topic, index), offset in offsets.items():
        by_topic.setdefault(topic, []).append(OffsetCommitPartition(index=index, committed_offset=offset))
    ids = dict(group.topic_ids)
    return TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group.group_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        generation_id=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=tuple(
            OffsetCommitTopic(name=name, topic_id=ids.get(name, NO_ID), partitions=tuple(found))
            for name, found in by_topic.items()
        ),
        transaction_version=producer.level,
    )


def end_transaction(producer: KnownProducer, *, committed: bool) -> EndTxnRequest:
    producer_id, epoch = _identity(producer)
    return EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=committed,
        transaction_version=producer.level,
    )


def _identity(producer: KnownProducer) -> Identity:
    assert producer.identity is not None
    return producer.identity
