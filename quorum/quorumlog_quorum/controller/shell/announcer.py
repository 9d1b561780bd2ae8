"""Tells every active controller which levels of features this controller's software supports (RegisterController).

Once for each controller that becomes active. An active controller of older software does not know the request: it is
asked again after longer and longer pauses, until another controller is active. A controller that the cluster's levels
are too new for stops when it replays them (decision 12), so a refusal is only logged here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from quorumlog.errors import ErrorCode
from quorumlog.messages.controller import RegisterControllerRequest, RegisterControllerResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog_quorum.metadata.loader import ActiveController, MetadataLoader

CALL_TIMEOUT_MS = 5_000
BACKOFF_MIN_MS = 100
BACKOFF_MAX_MS = 30_000

# One attempt at the active controller, within so many ms. Raises RpcError.
CallOnce = Callable[[RegisterControllerRequest, int], Awaitable[RegisterControllerResponse]]

_log = logging.getLogger("quorumlog.controller")


class Announcer:
    """registration: made anew for each call, since the addresses are known only after the start."""

    def __init__(
        self,
        *,
        subscription: MetadataLoader,
        call: CallOnce,
        registration: Callable[[], RegisterControllerRequest],
        nursery: Nursery,
    ) -> None:
        self._subscription = subscription
        self._call = call
        self._registration = registration
        self._nursery = nursery
        self._running: asyncio.Task[None] | None = None
        self._started = False
        subscription.on_controller_change(self._on_change)

    def start(self) -> None:
        """The addresses of this node are known."""
        self._started = True
        self._on_change()

    def _on_change(self) -> None:
        if self._running is not None:
            self._running.cancel()
            self._running = None
        active = self._subscription.active_controller
        if active is not None and self._started:
            self._running = self._nursery.start(self._announce(active), "announce controller")

    async def _announce(self, active: ActiveController) -> None:
        failures = 0
        while not await self._told(active):
            await asyncio.sleep(min(BACKOFF_MIN_MS << min(failures, 10), BACKOFF_MAX_MS) / 1_000)
            failures += 1

    async def _told(self, active: ActiveController) -> bool:
        try:
            response = await self._call(self._registration(), CALL_TIMEOUT_MS)
        except RpcError as error:
            _log.debug("controller %d was not told what this node supports: %s", active.node_id, error)
            return False
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            _log.warning("controller %d: %s", active.node_id, response.error_message)
            return True
        return response.error_code == ErrorCode.NONE
