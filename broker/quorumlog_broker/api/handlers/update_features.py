"""UpdateFeatures: forwarded to the controller. The broker answers once its own metadata shows the new levels.

What a downgrade would take from a group or a transaction, the coordinators are asked first (features_in_use.py).
kraft.version is no metadata: the answer comes when the voters are committed in the log.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import UpdateFeaturesRequest, UpdateFeaturesResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.handlers.features_in_use import check_not_in_use
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.features import KRAFT_VERSION
from quorumlog_quorum.metadata.image import Image, finalized_levels

DEFAULT_TIMEOUT_MS = 60_000  # Kafka's


async def handle_update_features(
    services: Services, context: Context, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    await check_not_in_use(services, context, request)
    timeout_ms = request.timeout_ms if request.timeout_ms > 0 else DEFAULT_TIMEOUT_MS
    response: UpdateFeaturesResponse = await forward(services.controller_for(context), request, timeout_ms)
    if response.error_code == ErrorCode.NONE and not request.validate_only:
        wanted = {update.name: update.level for update in request.updates if update.name != KRAFT_VERSION}
        await until_image(services, lambda image: _shows(image, wanted))
    return response


def _shows(image: Image, levels: Mapping[str, int]) -> bool:
    finalized = finalized_levels(image)
    return all(finalized.get(name, 0) == level for name, level in levels.items())
