"""Requests of transactions that a node alone answers without an error. Each makes the transaction that it is about."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

from quorumlog.messages.admin import FindCoordinatorRequest
from quorumlog.messages.groups import OffsetCommitPartition, OffsetCommitTopic
from quorumlog.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    TransactionMarker,
    TransactionToExtend,
    TransactionTopic,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)

Call = Callable[[Any], Any]
TRIES = 400

_numbers = count(1)


def new_producer(call: Call) -> tuple[str, InitProducerIdResponse]:
    """A transactional id and its producer. Its coordinator is ready."""
    transactional_id = f"transactional-{next(_numbers)}"
    request = InitProducerIdRequest(transactional_id=transactional_id)
    for _ in range(TRIES):
        found = call(FindCoordinatorRequest(key_type=1, keys=(transactional_id,))).coordinators[0]
        if found.error_code == 0:
            answer: InitProducerIdResponse = call(request)
            if answer.error_code == 0:
                return transactional_id, answer
        time.sleep(0.01)
    raise AssertionError(f"{transactional_id} has no coordinator: {found}")


def _topics(topic: str) -> tuple[TransactionTopic, ...]:
    return (TransactionTopic(name=topic, partitions=(0,)),)


def add_partitions(call: Call, topic: str) -> AddPartitionsToTxnRequest:
    transactional_id, producer = new_producer(call)
    extend = TransactionToExtend(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=_topics(topic),
    )
    return AddPartitionsToTxnRequest(transactions=(extend,))


def add_offsets(call: Call, _topic: str) -> AddOffsetsToTxnRequest:
    transactional_id, producer = new_producer(call)
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        group_id="of-transactions",
    )


def _begun(call: Call, topic: str) -> TransactionToExtend:
    request = add_partitions(call, topic)
    answer = call(request)
    assert answer.results[0].topics[0].partitions[0].error_code == 0, answer
    return request.transactions[0]


def end(call: Call, topic: str) -> EndTxnRequest:
    begun = _begun(call, topic)
    return EndTxnRequest(
        transactional_id=begun.transactional_id,
        producer_id=begun.producer_id,
        producer_epoch=begun.producer_epoch,
        committed=True,
    )


def commit_offsets(call: Call, topic: str) -> TxnOffsetCommitRequest:
    added = add_offsets(call, topic)
    for _ in range(TRIES):
        found = call(FindCoordinatorRequest(keys=(added.group_id,))).coordinators[0]
        if found.error_code == 0 and call(added).error_code == 0:
            break
        time.sleep(0.01)
    partitions = (OffsetCommitPartition(index=0, committed_offset=1),)
    return TxnOffsetCommitRequest(
        transactional_id=added.transactional_id,
        group_id=added.group_id,
        producer_id=added.producer_id,
        producer_epoch=added.producer_epoch,
        topics=(OffsetCommitTopic(name=topic, partitions=partitions),),
    )


def abort(call: Call, topic: str) -> WriteTxnMarkersRequest:
    """Of a producer that is not known to the partition: the marker is written all the same."""
    _, producer = new_producer(call)
    marker = TransactionMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=False,
        topics=_topics(topic),
        coordinator_epoch=0,
    )
    return WriteTxnMarkersRequest(markers=(marker,))


OF_TRANSACTIONS: dict[type, Callable[[Call, str], Any]] = {
    AddPartitionsToTxnRequest: add_partitions,
    AddOffsetsToTxnRequest: add_offsets,
    EndTxnRequest: end,
    TxnOffsetCommitRequest: commit_offsets,
    WriteTxnMarkersRequest: abort,
    DescribeTransactionsRequest: lambda call, _topic: DescribeTransactionsRequest(
        transactional_ids=(new_producer(call)[0],)
    ),
    ListTransactionsRequest: lambda _call, _topic: ListTransactionsRequest(),
    DescribeProducersRequest: lambda _call, topic: DescribeProducersRequest(topics=_topics(topic)),
}
