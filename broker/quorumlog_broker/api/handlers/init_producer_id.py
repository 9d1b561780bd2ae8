"""InitProducerId: a producer id for an idempotent producer, or the id and epoch of a transactional one.

A producer without a transactional id gets a new id each time, whatever it had before (KIP-360). The coordinator of a
transactional id gives the next epoch of the same one, and aborts first what an earlier producer has left open.
"""

from __future__ import annotations

from quorumlog.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services
from quorumlog_broker.api.transaction_calls import ask
from quorumlog_broker.coordinator.transactions.shard import TransactionShard


async def handle_init_producer_id(
    services: Services, context: Context, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    if request.transactional_id is None:
        return InitProducerIdResponse(producer_id=await services.producer_ids.take(), producer_epoch=0)
    if request.transactional_id:
        services.transactions.coordinators.of(request.transactional_id)  # raises where it is not here
        await services.producer_ids.until_some()  # the core cannot wait for one
    response: InitProducerIdResponse = await ask(
        services, context, request.transactional_id, TransactionShard.init_producer_id, request
    )
    return response
