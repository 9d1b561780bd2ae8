"""A change that the controller has carried out is waited for before this broker answers.

Clients ask next for what they have made, mostly here. Bounded: a broker that lags answers all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.api.services import Services
from quorum.metadata.image import Image

IMAGE_WAIT_MS = 1_000


async def until_image(services: Services, shows: Callable[[Image], bool], timeout_ms: int = IMAGE_WAIT_MS) -> None:
    """Return once this broker's metadata shows it, or at the time-out."""
    deadline_ms = services.clock.now_ms() + timeout_ms
    while not shows(services.subscription.image):
        left_ms = deadline_ms - services.clock.now_ms()
        next_offset = services.subscription.image.offset + 1
        if left_ms <= 0 or not await services.subscription.wait_for_offset(next_offset, left_ms):
            return
