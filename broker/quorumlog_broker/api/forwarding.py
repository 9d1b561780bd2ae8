"""Forwards requests that only the active controller can answer (KIP-590).

Clients never talk to a controller, since its listener is internal. If the response is lost, the request may have been
carried out; REQUEST_TIMED_OUT says so.
"""

from __future__ import annotations

from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.rpc.transport import NotDelivered, RpcError
from quorumlog_broker.lifecycle.controller_channel import ControllerCalls

FORWARD_TIMEOUT_MIN_MS = 1_000
FORWARD_TIMEOUT_MAX_MS = 120_000


async def forward(channel: ControllerCalls, request: Any, timeout_ms: int) -> Any:
    """The active controller's response. Raises ApiError: NOT_CONTROLLER (nothing was changed), REQUEST_TIMED_OUT."""
    bounded_ms = max(FORWARD_TIMEOUT_MIN_MS, min(timeout_ms, FORWARD_TIMEOUT_MAX_MS))
    try:
        return await channel.call(request, bounded_ms)
    except NotDelivered as error:
        raise ApiError(ErrorCode.NOT_CONTROLLER, f"{error}; nothing was changed, try again") from error
    except RpcError as error:
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"{error}; it may have been carried out") from error
