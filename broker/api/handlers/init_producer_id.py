"""InitProducerId: a producer id for an idempotent producer. Transactions are not supported yet and are refused.

A producer without a transactional id gets a new id each time, whatever it had before (KIP-360).
"""

from __future__ import annotations

from broker.api.services import Services
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from quorumlog.rpc.transport import Context


async def handle_init_producer_id(
    services: Services, _context: Context, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "transactions are not supported; leave transactional.id unset")
    return InitProducerIdResponse(producer_id=await services.producer_ids.take(), producer_epoch=0)
