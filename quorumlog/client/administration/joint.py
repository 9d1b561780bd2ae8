"""What an admin client asks of joint groups (decision 112): which there are, and how what is open of one is aborted."""

from __future__ import annotations

from typing import Any

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import NOT_OURS, NoProtocol, NotOurs
from quorumlog.client.transactions.coordinators import TransactionCoordinator
from quorumlog.ids import NodeId
from quorumlog.messages.joint import ListedJointGroup, ListJointRequest, ListJointResponse
from quorumlog.rpc.transport import NotServed


async def joint_groups(link: Link) -> list[ListedJointGroup]:
    """Of all brokers, by name. Raises RequestFailed, Unavailable; NoJointTransactions where brokers have none; RpcError
    if a broker has not answered in time, since a list without its groups would be wrong."""
    found: dict[str, ListedJointGroup] = {}
    try:
        await link.refresh([])
        for node_id in sorted(link.cache.brokers):
            found.update((group.group_id, group) for group in await _groups_of(link, node_id))
    except (NoProtocol, NotServed) as error:
        raise NotOurs(NOT_OURS) from error
    return [found[name] for name in sorted(found)]


async def _groups_of(link: Link, node_id: NodeId) -> tuple[ListedJointGroup, ...]:
    async def ask() -> ListJointResponse:
        response: ListJointResponse = await link.call_node(node_id, ListJointRequest())
        check(response)
        return response

    response: ListJointResponse = await link.until(ask, link.options.default_api_timeout_ms)
    return response.groups


async def of_joint_group(link: Link, group_id: str, request: Any) -> Any:
    """The answer of the group's coordinator. Raises NoJointTransactions, RequestFailed, Unavailable."""
    coordinator = TransactionCoordinator(link, group_id)

    async def ask() -> Any:
        try:
            response = await coordinator.call(request)
        except (NoProtocol, NotServed) as error:
            raise NotOurs(NOT_OURS) from error
        check(response)
        return response

    return await link.until(ask, link.options.default_api_timeout_ms)
