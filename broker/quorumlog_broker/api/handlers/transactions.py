"""AddPartitionsToTxn, AddOffsetsToTxn, EndTxn: what a transactional producer asks of its coordinator.

Brokers ask AddPartitionsToTxn, too, for many producers at once and only to verify (KIP-890); a client is one producer.
An error that is raised here is the answer's own.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog.topic_name import CONSUMER_OFFSETS
from quorumlog_broker.api.internal_topic import ensure_topic
from quorumlog_broker.api.services import Services
from quorumlog_broker.api.transaction_calls import ask, caller_of
from quorumlog_broker.coordinator.placement import partition_of
from quorumlog_broker.coordinator.runtime.add_partitions import add_partitions_to_transactions
from quorumlog_broker.coordinator.runtime.transaction_coordinator import add_offsets
from quorumlog_broker.coordinator.transactions.shard import TransactionShard


async def handle_add_partitions(
    services: Services, context: Context, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    coordinators = services.transactions.coordinators
    if not context.listener.internal:
        if len(request.transactions) > 1 or any(one.verify_only for one in request.transactions):
            text = "only brokers ask for several producers, or to verify"
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)
        for one in request.transactions:
            if not one.transactional_id:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty; set transactional.id")
            await coordinators.until_loaded(one.transactional_id)
    return await add_partitions_to_transactions(coordinators, caller_of(context), request)


async def handle_add_offsets(
    services: Services, context: Context, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    await ensure_topic(services, services.offsets_topic.creatable())
    topic = services.subscription.image.topic(CONSUMER_OFFSETS)
    if topic is None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{CONSUMER_OFFSETS} was deleted")
    index = partition_of(request.group_id, len(topic.partitions))
    response: AddOffsetsToTxnResponse = await ask(
        services, context, request.transactional_id, add_offsets, (request, index)
    )
    return response


async def handle_end_transaction(services: Services, context: Context, request: EndTxnRequest) -> EndTxnResponse:
    async def end() -> EndTxnResponse:
        response: EndTxnResponse = await ask(
            services, context, request.transactional_id, TransactionShard.end_transaction, request
        )
        return response

    return await services.transactions.commits.passing(end()) if request.committed else await end()
