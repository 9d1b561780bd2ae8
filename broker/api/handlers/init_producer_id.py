"""InitProducerId: an identity for an idempotent producer. Transactions are not there yet, and refused by name.

A producer that comes without a transactional id gets a new identity each time: what it had before, if anything, is of
no concern to anybody (KIP-360).
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
