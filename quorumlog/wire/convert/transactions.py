"""The calls of transactions: what a version of Kafka's message says by its number alone.

The version tells which errors a producer understands (KIP-588: PRODUCER_FENCED; KIP-890: TRANSACTION_ABORTABLE) and
whether it gets an epoch for each transaction (KIP-890, part 2). Coordinators know no versions: a row reads them into
fields of our messages, and a client finds the version that says what the fields say.
Sources: Kafka's message definitions, and TransactionVersion of its server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import OffsetCommitPartitionResult, OffsetCommitTopic, OffsetCommitTopicResult
from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    ExtendedTransaction,
    ProducersOfPartition,
    ProducersOfTopic,
    TransactionPartitionResult,
    TransactionToExtend,
    TransactionTopic,
    TransactionTopicResult,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from quorumlog.slices import Pace, Sliced
from quorumlog.wire.convert.mirror import Mapped, from_values, from_values_sliced, to_values
from quorumlog.wire.format.schema import Values

EPOCH_PER_TRANSACTION = 2  # transaction.version from which a producer gets an epoch for each transaction
FENCED_IN_INIT = 4  # the first InitProducerId whose producers understand PRODUCER_FENCED
FENCED = 2  # likewise of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn
SEVERAL_TRANSACTIONS = 4  # AddPartitionsToTxn: what brokers send
EPOCH_FROM_END = 5  # EndTxn: answers with the next epoch
OFFSETS_ADD_THEMSELVES = 5  # TxnOffsetCommit: AddOffsetsToTxn is not called before it
ABORTABLE_OFFSETS = 4  # TxnOffsetCommit: TRANSACTION_ABORTABLE is understood
LOADING_OFFSETS = 2  # TxnOffsetCommit: COORDINATOR_LOAD_IN_PROGRESS is understood
_OF_ONE = "v3_and_below_"  # kio's prefix of the fields that only older versions have

# --- InitProducerId ---


def read_init_request(values: Values, version: int) -> InitProducerIdRequest:
    request: InitProducerIdRequest = from_values(InitProducerIdRequest, values)
    return request if version >= FENCED_IN_INIT else replace(request, takes_producer_fenced=False)


def init_version(request: InitProducerIdRequest, newest: int) -> int:
    return newest if request.takes_producer_fenced else min(newest, FENCED_IN_INIT - 1)


# --- AddPartitionsToTxn ---


def read_extend_request(values: Values, version: int, pace: Pace) -> Sliced[AddPartitionsToTxnRequest]:
    if version >= SEVERAL_TRANSACTIONS:
        several: AddPartitionsToTxnRequest = yield from from_values_sliced(AddPartitionsToTxnRequest, values, pace)
        extended = [replace(one, transaction_version=EPOCH_PER_TRANSACTION) for one in several.transactions]
        return AddPartitionsToTxnRequest(transactions=tuple(extended))
    of_one = {name.removeprefix(_OF_ONE): value for name, value in values.items()}
    only: TransactionToExtend = yield from from_values_sliced(TransactionToExtend, of_one, pace)
    return AddPartitionsToTxnRequest(transactions=(replace(only, takes_producer_fenced=version >= FENCED),))


def write_extend_request(request: AddPartitionsToTxnRequest, version: int) -> Values:
    if version >= SEVERAL_TRANSACTIONS:
        return to_values(request)
    (only,) = request.transactions
    return {f"{_OF_ONE}{name}": value for name, value in to_values(only).items()}


def extend_version(request: AddPartitionsToTxnRequest, newest: int) -> int:
    for_broker = len(request.transactions) != 1 or any(
        one.verify_only or one.transaction_version >= EPOCH_PER_TRANSACTION for one in request.transactions
    )
    return newest if for_broker else _before_fenced(request.transactions[0], min(newest, SEVERAL_TRANSACTIONS - 1))


def write_extend_response(
    response: AddPartitionsToTxnResponse, _request: AddPartitionsToTxnRequest, version: int
) -> Values:
    """Before version 4 the partitions of the only transaction."""
    values = to_values(response)
    if version < SEVERAL_TRANSACTIONS:
        topics = [topic for extended in response.results[:1] for topic in extended.topics]
        values["results_by_topic_v3_and_below"] = Mapped(to_values, topics)
    return values


def read_extend_response(
    values: Values, request: AddPartitionsToTxnRequest, version: int
) -> AddPartitionsToTxnResponse:
    response: AddPartitionsToTxnResponse = from_values(AddPartitionsToTxnResponse, values)
    if version >= SEVERAL_TRANSACTIONS:
        return response
    found = values["results_by_topic_v3_and_below"]
    topics = tuple([from_values(TransactionTopicResult, topic) for topic in found])
    only = ExtendedTransaction(transactional_id=request.transactions[0].transactional_id, topics=topics)
    return replace(response, results=(only,))


def refuse_extend(request: AddPartitionsToTxnRequest, code: int, message: str) -> AddPartitionsToTxnResponse:
    results = [
        ExtendedTransaction(transactional_id=one.transactional_id, topics=_refused(one.topics, code))
        for one in request.transactions
    ]
    return AddPartitionsToTxnResponse(error_code=code, error_message=message, results=tuple(results))


# --- AddOffsetsToTxn, EndTxn ---


def read_add_offsets_request(values: Values, version: int) -> AddOffsetsToTxnRequest:
    request: AddOffsetsToTxnRequest = from_values(AddOffsetsToTxnRequest, values)
    return replace(request, takes_producer_fenced=version >= FENCED)


def add_offsets_version(request: AddOffsetsToTxnRequest, newest: int) -> int:
    return _before_fenced(request, newest)


def read_end_request(values: Values, version: int) -> EndTxnRequest:
    request: EndTxnRequest = from_values(EndTxnRequest, values)
    return replace(
        request,
        transaction_version=EPOCH_PER_TRANSACTION if version >= EPOCH_FROM_END else 0,
        takes_producer_fenced=version >= FENCED,
    )


def end_version(request: EndTxnRequest, newest: int) -> int:
    if request.transaction_version >= EPOCH_PER_TRANSACTION:
        return newest
    return _before_fenced(request, min(newest, EPOCH_FROM_END - 1))


def _before_fenced(request: Any, newest: int) -> int:
    return newest if request.takes_producer_fenced else min(newest, FENCED - 1)


# --- TxnOffsetCommit ---


def read_offsets_request(values: Values, version: int, pace: Pace) -> Sliced[TxnOffsetCommitRequest]:
    request: TxnOffsetCommitRequest = yield from from_values_sliced(TxnOffsetCommitRequest, values, pace)
    return replace(
        request,
        transaction_version=EPOCH_PER_TRANSACTION if version >= OFFSETS_ADD_THEMSELVES else 0,
        takes_abortable=version >= ABORTABLE_OFFSETS,
    )


def offsets_version(request: TxnOffsetCommitRequest, newest: int) -> int:
    if request.transaction_version >= EPOCH_PER_TRANSACTION:
        return newest
    newest = min(newest, OFFSETS_ADD_THEMSELVES - 1)
    return newest if request.takes_abortable else min(newest, ABORTABLE_OFFSETS - 1)


def write_offsets_response(response: TxnOffsetCommitResponse, _request: TxnOffsetCommitRequest, version: int) -> Values:
    """Before version 2 a coordinator that still loads is one that is not available (KAFKA-7296)."""
    if version >= LOADING_OFFSETS:
        return to_values(response)

    def topic_values(topic: OffsetCommitTopicResult) -> Values:
        return {**to_values(topic), "partitions": Mapped(_not_loading, topic.partitions)}

    return {**to_values(response), "topics": Mapped(topic_values, response.topics)}


def _not_loading(partition: OffsetCommitPartitionResult) -> Values:
    values = to_values(partition)
    if partition.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        values["error_code"] = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return values


def refuse_offsets(request: TxnOffsetCommitRequest, code: int, message: str) -> TxnOffsetCommitResponse:
    topics = [_refused_offsets(topic, code) for topic in request.topics]
    return TxnOffsetCommitResponse(error_code=code, error_message=message, topics=tuple(topics))


def _refused_offsets(topic: OffsetCommitTopic, code: int) -> OffsetCommitTopicResult:
    partitions = [OffsetCommitPartitionResult(index=one.index, error_code=code) for one in topic.partitions]
    return OffsetCommitTopicResult(name=topic.name, partitions=tuple(partitions))


# --- calls of coordinators and tools ---


def refuse_markers(request: WriteTxnMarkersRequest, code: int, message: str) -> WriteTxnMarkersResponse:
    written = [WrittenMarker(producer_id=one.producer_id, topics=_refused(one.topics, code)) for one in request.markers]
    return WriteTxnMarkersResponse(error_code=code, error_message=message, markers=tuple(written))


def refuse_describe(request: DescribeTransactionsRequest, code: int, message: str) -> DescribeTransactionsResponse:
    found = [DescribedTransaction(transactional_id=name, error_code=code) for name in request.transactional_ids]
    return DescribeTransactionsResponse(error_code=code, error_message=message, transactions=tuple(found))


def refuse_producers(request: DescribeProducersRequest, code: int, message: str) -> DescribeProducersResponse:
    topics = [
        ProducersOfTopic(
            name=topic.name,
            partitions=tuple(
                [
                    ProducersOfPartition(index=index, error_code=code, error_message=message)
                    for index in topic.partitions
                ]
            ),
        )
        for topic in request.topics
    ]
    return DescribeProducersResponse(error_code=code, error_message=message, topics=tuple(topics))


def _refused(topics: Iterable[TransactionTopic], code: int) -> tuple[TransactionTopicResult, ...]:
    return tuple(
        [
            TransactionTopicResult(
                name=topic.name,
                partitions=tuple(
                    [TransactionPartitionResult(index=index, error_code=code) for index in topic.partitions]
                ),
            )
            for topic in topics
        ]
    )
