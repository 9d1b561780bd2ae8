"""Producer ids, transactions, and joint ones.

Each item of a request is judged by itself, also where a request has several transactions or markers (CVE-2026-33343).
A joint transaction (decision 112) is found like a transactional id, by the name of its group, and needs the same right.
Its children produce under ids of their own, `joint:GROUP:...`, for which a PREFIXED rule is needed, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import ListJointRequest, ListJointResponse
from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    ExtendedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionPartitionResult,
    TransactionToExtend,
    TransactionTopicResult,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
)
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.groups import not_committed
from quorumlog.security.required.judged import Judged, answered, put_back, split_topics
from quorumlog.security.required.need import (
    CLUSTER_ACTION,
    CLUSTER_ALTER,
    CLUSTER_IDEMPOTENT_WRITE,
    GROUP_READ,
    ID_DESCRIBE,
    ID_WRITE,
    TOPIC_DESCRIBE,
    TOPIC_READ,
    TOPIC_WRITE,
)


def init_producer_id(ask: Asker, request: InitProducerIdRequest) -> Judged:
    if request.transactional_id is not None:
        ask.demand(ID_WRITE, request.transactional_id)
    elif not ask.may_any(TOPIC_WRITE):
        ask.demand(CLUSTER_IDEMPOTENT_WRITE)
    return Judged(request)


def add_partitions(ask: Asker, request: AddPartitionsToTxnRequest) -> Judged:
    """Several producers, and questions, come from brokers only. Where one topic of a transaction is denied, nothing of
    it is added (OPERATION_NOT_ATTEMPTED)."""
    if len(request.transactions) > 1 or any(one.verify_only for one in request.transactions):
        ask.demand(CLUSTER_ACTION)
        return Judged(request)
    answers = [_not_extended(ask, one) for one in request.transactions]
    if not any(answers):
        return Judged(request)
    return answered(AddPartitionsToTxnResponse(results=tuple(one for one in answers if one is not None)))


def _not_extended(ask: Asker, one: TransactionToExtend) -> ExtendedTransaction | None:
    """None: it may be extended."""
    if not ask.allows(ID_WRITE, one.transactional_id):
        codes = [ID_WRITE.denied for _ in one.topics]
    else:
        faults = [ask.topic_fault(TOPIC_WRITE, topic) for topic in one.topics]
        if not any(faults):
            return None
        codes = [fault or ErrorCode.OPERATION_NOT_ATTEMPTED for fault in faults]
    topics = (_topic_result(topic, code) for topic, code in zip(one.topics, codes, strict=True))
    return ExtendedTransaction(transactional_id=one.transactional_id, topics=tuple(topics))


def _topic_result(topic: Any, code: ErrorCode) -> TransactionTopicResult:
    partitions = (TransactionPartitionResult(index=index, error_code=code) for index in topic.partitions)
    return TransactionTopicResult(name=topic.name, partitions=tuple(partitions))


def add_offsets(ask: Asker, request: AddOffsetsToTxnRequest) -> Judged:
    ask.demand(ID_WRITE, request.transactional_id)
    ask.demand(GROUP_READ, request.group_id)
    return Judged(request)


def end_transaction(ask: Asker, request: EndTxnRequest) -> Judged:
    ask.demand(ID_WRITE, request.transactional_id)
    return Judged(request)


def txn_offset_commit(ask: Asker, request: TxnOffsetCommitRequest) -> Judged:
    ask.demand(ID_WRITE, request.transactional_id)
    ask.demand(GROUP_READ, request.group_id)
    return split_topics(ask, TOPIC_READ, request, TxnOffsetCommitResponse, not_committed)


def write_markers(ask: Asker, request: WriteTxnMarkersRequest) -> Judged:
    if not ask.may(CLUSTER_ALTER):
        ask.demand(CLUSTER_ACTION)
    return Judged(request)


# --- for people


def describe_transactions(ask: Asker, request: DescribeTransactionsRequest) -> Judged:
    faults = [not ask.allows(ID_DESCRIBE, one) for one in request.transactional_ids]
    kept = tuple(one for one, fault in zip(request.transactional_ids, faults, strict=True) if not fault)
    if faults and not kept:
        nothing = put_back(request.transactional_ids, faults, (), _not_described)
        return answered(DescribeTransactionsResponse(transactions=nothing))

    def finish(response: DescribeTransactionsResponse) -> DescribeTransactionsResponse:
        if response.error_code:
            return response
        found = [_with_visible_topics(ask, one) for one in response.transactions]
        return replace(response, transactions=put_back(request.transactional_ids, faults, found, _not_described))

    return Judged(replace(request, transactional_ids=kept), finish)


def _not_described(transactional_id: str, _fault: object) -> DescribedTransaction:
    return DescribedTransaction(transactional_id=transactional_id, error_code=ID_DESCRIBE.denied)


def _with_visible_topics(ask: Asker, one: DescribedTransaction) -> DescribedTransaction:
    topics = tuple(topic for topic in one.topics if ask.may(TOPIC_DESCRIBE, topic.name))
    return one if len(topics) == len(one.topics) else replace(one, topics=topics)


def list_transactions(ask: Asker, request: ListTransactionsRequest) -> Judged:
    def finish(response: ListTransactionsResponse) -> ListTransactionsResponse:
        return replace(response, transactions=_visible(ask, response.transactions))

    return Judged(request, finish)


def _visible(ask: Asker, found: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(one for one in found if ask.may(ID_DESCRIBE, one.transactional_id))


# --- joint transactions


def joint(ask: Asker, request: Any) -> Judged:
    ask.demand(ID_WRITE, request.group_id)
    return Judged(request)


def list_joint(ask: Asker, request: ListJointRequest) -> Judged:
    def finish(response: ListJointResponse) -> ListJointResponse:
        return replace(response, groups=tuple(one for one in response.groups if ask.may(ID_DESCRIBE, one.group_id)))

    return Judged(request, finish)
