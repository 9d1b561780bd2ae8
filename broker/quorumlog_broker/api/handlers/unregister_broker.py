"""UnregisterBroker: forwarded to the controller; answered once the registration is gone from this broker's metadata."""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services

TIMEOUT_MS = 60_000  # Kafka's request names none


async def handle_unregister_broker(
    services: Services, context: Context, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    before = services.subscription.image.brokers.get(request.broker_id)
    response: UnregisterBrokerResponse = await forward(services.controller_for(context), request, TIMEOUT_MS)
    if response.error_code == ErrorCode.NONE and before is not None:
        await until_image(services, lambda image: image.brokers.get(request.broker_id) != before)
    return response
