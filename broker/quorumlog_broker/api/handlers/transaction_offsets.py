"""TxnOffsetCommit: offsets of a group that become valid with the producer's transaction (KIP-98, KIP-447).

The coordinator of the group asks that of the transaction whether its partition is in it, as the leader of any partition
does for a batch; of transaction.version 2 the same call adds it.
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.groups import OffsetCommitTopicResult
from quorumlog.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from quorumlog.rpc.transport import Context
from quorumlog.topic_name import CONSUMER_OFFSETS
from quorumlog.turn import in_turns
from quorumlog_broker.api.group_calls import check_group_id
from quorumlog_broker.api.handlers.committed_topics import answered_topics, known_topics
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.api.transaction_calls import caller_of
from quorumlog_broker.coordinator.runtime.verified_appends import ask_patiently
from quorumlog_broker.coordinator.runtime.verifier import EPOCH_PER_TRANSACTION, Producer
from quorumlog_storage.producers.verification import Guard


async def handle_txn_offset_commit(
    services: Services, context: Context, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Of partitions that do not exist nothing is committed; the others of the same request are."""
    check_group_id(request.group_id)
    check_topic_count(request.topics, services.limits)
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty; set transactional.id")
    await services.groups.until_loaded(request.group_id)
    image = services.coordinators_image()
    known = await in_turns(known_topics(image, request.topics))
    answers: tuple[OffsetCommitTopicResult, ...] = ()
    if known:
        guard = await _verified(services, request)
        coordinator = services.groups.of(request.group_id)
        asked = replace(request, topics=known)
        response: TxnOffsetCommitResponse = await coordinator.commit_transactional(caller_of(context), asked, guard)
        answers = response.topics
    return TxnOffsetCommitResponse(topics=await in_turns(answered_topics(image, request.topics, answers)))


async def _verified(services: Services, request: TxnOffsetCommitRequest) -> Guard | None:
    """The guard, taken before the coordinator of the transaction vouched for it. Raises ApiError."""
    transactions = services.transactions
    adds = request.transaction_version >= EPOCH_PER_TRANSACTION

    def take_guard() -> Guard | None:
        coordinator = services.groups.of(request.group_id)
        producer_id, epoch, now_ms = request.producer_id, request.producer_epoch, services.clock.now_ms()
        return coordinator.begin_verification(producer_id, epoch, now_ms, epoch_per_transaction=adds)

    if not (adds or transactions.verifies):
        return take_guard()
    producer = Producer(request.transactional_id, request.producer_id, request.producer_epoch, adds)
    code, guard = await ask_patiently(
        transactions.verifier,
        services.clock,
        transactions.verification,
        producer,
        (CONSUMER_OFFSETS, services.groups.index_of(request.group_id)),
        take_guard=take_guard,
    )
    if code is not ErrorCode.NONE:
        raise _refusal(code, request)
    return guard


def _refusal(code: ErrorCode, request: TxnOffsetCommitRequest) -> ApiError:
    """As Kafka's group coordinators tell it: for what may pass, an error after which the offsets are sent again."""
    text = f"the coordinator of transactional id {request.transactional_id} answered {code.name}"
    adds = request.transaction_version >= EPOCH_PER_TRANSACTION
    may_pass = code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_COORDINATOR)
    if may_pass or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    elif code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif code is ErrorCode.TRANSACTION_ABORTABLE and not request.takes_abortable:
        code = ErrorCode.INVALID_TXN_STATE
    return ApiError(code, text)
