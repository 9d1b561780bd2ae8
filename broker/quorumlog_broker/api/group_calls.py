"""The way of a request to the coordinator of its group, which is on this broker or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.runtime.group_coordinator import Caller, ShardCall
from quorumlog_broker.coordinator.runtime.many_calls import ask_each
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer

MAX_NAME_BYTES = 16_384  # of a group's and a member's names: the log's records have 32,767 for what is made of them


Found = TypeVar("Found")


def begin(services: Services, context: Context, group_id: str, method: ShardCall, request: Any) -> PendingAnswer:
    """Give a call to the core of the group. Raises ApiError, as `GroupCoordinator.call` and `GroupCoordinators.of`."""
    caller = Caller(context.client_id, context.client_host, services.seen_by(context))
    return services.groups.of(group_id).call(method, caller, request)


async def ask_groups(
    services: Services,
    context: Context,
    group_ids: Sequence[str],
    method: ShardCall,
    refused: Callable[[str, ApiError], Found],
) -> list[Found]:
    """The answers about several groups, each with its own error."""
    return await ask_each(group_ids, lambda one: begin(services, context, one, method, one), refused)


def check_group_id(group_id: str) -> None:
    """Raises ApiError(INVALID_GROUP_ID)."""
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group's id is empty; set group.id")
    if is_too_long(group_id):
        raise ApiError(ErrorCode.INVALID_GROUP_ID, f"a group's id has at most {MAX_NAME_BYTES} bytes")


def is_too_long(name: str) -> bool:
    return len(name) * 3 > MAX_NAME_BYTES and len(name.encode()) > MAX_NAME_BYTES
