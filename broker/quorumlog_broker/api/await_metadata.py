"""After a change by the controller, the broker waits until its own metadata shows the change; only then it answers.

A client's next request is about what it has just changed, and usually goes to the same broker. The wait is bounded: a
broker whose metadata lags answers all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.image import Image

IMAGE_WAIT_MS = 1_000


async def until_image(services: Services, shows: Callable[[Image], bool], timeout_ms: int = IMAGE_WAIT_MS) -> None:
    """Return as soon as `shows` is true of this broker's metadata, or at the time-out."""
    deadline_ms = services.clock.now_ms() + timeout_ms
    while not shows(services.subscription.image):
        left_ms = deadline_ms - services.clock.now_ms()
        next_offset = services.subscription.image.offset + 1
        if left_ms <= 0 or not await services.subscription.wait_for_offset(next_offset, left_ms):
            return
