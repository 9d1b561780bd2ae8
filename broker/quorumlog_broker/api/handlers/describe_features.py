"""DescribeFeatures: the levels in force, and which levels each node supports, as this broker's metadata has them."""

from __future__ import annotations

from quorumlog.messages.admin import (
    DescribedFeature,
    DescribeFeaturesRequest,
    DescribeFeaturesResponse,
    NodeFeatures,
)
from quorumlog.messages.common import FeatureRange
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.features import KRAFT_VERSION, KRAFT_VERSIONS, as_shown
from quorumlog_quorum.metadata.image import finalized_levels


async def handle_describe_features(
    services: Services, _context: Context, _request: DescribeFeaturesRequest
) -> DescribeFeaturesResponse:
    image = services.caught_up_image()
    finalized = {**finalized_levels(image), KRAFT_VERSION: services.kraft_version()}
    return DescribeFeaturesResponse(
        features=tuple(
            DescribedFeature(
                name=supported.name,
                min_level=supported.min_level,
                max_level=supported.max_level,
                finalized_level=finalized.get(supported.name, 0),
            )
            for supported in sorted(_shown((*services.supported, KRAFT_VERSIONS)), key=lambda supported: supported.name)
        ),
        epoch=image.offset - 1,
        brokers=tuple(
            NodeFeatures(node_id=broker.broker_id, features=_shown(broker.features))
            for broker in image.sorted_brokers()
        ),
        controllers=tuple(
            NodeFeatures(node_id=controller.controller_id, features=_shown(controller.features))
            for controller in image.sorted_controllers()
        ),
    )


def _shown(ranges: tuple[FeatureRange, ...]) -> tuple[FeatureRange, ...]:
    return tuple(as_shown(one) for one in ranges)
