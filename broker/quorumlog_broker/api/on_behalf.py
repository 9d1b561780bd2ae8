"""Calls to the controller for a client: the controller is told for whom, and decides by its own access rules."""

from __future__ import annotations

from typing import Any

from quorumlog.rpc.envelope import read_answer, seal
from quorumlog.rpc.transport import Context
from quorumlog_broker.lifecycle.controller_channel import ControllerCalls


class OnBehalf:
    """`ControllerCalls` for one client."""

    def __init__(self, controller: ControllerCalls, client: Context) -> None:
        self._controller, self._client = controller, client

    async def call(self, request: Any, timeout_ms: int) -> Any:
        """As `ControllerChannel.call`. Raises also ApiError."""
        answer = await self._controller.call(seal(request, self._client), timeout_ms)
        return read_answer(request, answer)
