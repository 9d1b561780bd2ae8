"""A consumer group as an admin client sees it, whichever protocol it has."""

from __future__ import annotations

from typing import Any, NamedTuple

from quorumlog.client.cluster.link import check
from quorumlog.client.errors import RequestFailed
from quorumlog.client.group.coordinator import GroupCoordinator
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.groups import DescribedConsumerGroup, DescribedGroup

DEAD = "Dead"  # the state of a group that does not exist


class GroupDescription(NamedTuple):
    """coordinator: the broker that answered. A group that does not exist has the state Dead.

    group: of the classic protocol, or of the consumer protocol (KIP-848).
    """

    coordinator: NodeId
    group: DescribedGroup | DescribedConsumerGroup


async def described(coordinator: GroupCoordinator, request: Any, group_id: str) -> Any:
    """The only group of the answer. Raises RequestFailed, but not for a group that does not exist."""
    response = await coordinator.call(request)
    check(response)
    (group,) = response.groups
    if group.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        raise RequestFailed(ErrorCode(group.error_code), group.error_message or f"group {group_id!r}")
    return group
