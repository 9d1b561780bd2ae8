"""The way of a request to the coordinator of its transactional id, which is on this broker or not."""

from __future__ import annotations

from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.runtime.coordinator import Caller, ShardCall
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer


def caller_of(context: Context) -> Caller:
    return Caller(context.client_id, context.client_host)


async def ask(services: Services, context: Context, transactional_id: str, method: ShardCall, request: Any) -> Any:
    """The answer of the core of the id, whose coordinator may have to be loaded before.

    Raises ApiError: INVALID_REQUEST for an empty id; as `Coordinator.call` and `Coordinators.of`.
    """
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty; set transactional.id")
    await services.transactions.coordinators.until_loaded(transactional_id)
    return await begin(services, context, transactional_id, method, request)


def begin(
    services: Services, context: Context, transactional_id: str, method: ShardCall, request: Any
) -> PendingAnswer:
    """Give a call to the core of the id. Raises ApiError, as `Coordinator.call` and `Coordinators.of`."""
    coordinator = services.transactions.coordinators.of(transactional_id)
    return coordinator.call(method, caller_of(context), request)
