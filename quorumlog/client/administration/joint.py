"""What an admin client asks of joint groups (decision 112): which there are, and how what is open of one is aborted."""

from __future__ import annotations

from typing import Any

from quorumlog.client.administration.transactions import TransactionCoordinator
from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import NOT_OURS, NoProtocol, NotOurs
from quorumlog.ids import NodeId
from quorumlog.messages.joint import (
    AbortJointRequest,
    AbortJointResponse,
    ForgetJointRequest,
    ListedJointGroup,
    ListJointRequest,
    ListJointResponse,
)
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


class JointAdmin:
    """A part of `AsyncAdmin`, which makes the link. Each call raises NoJointTransactions where brokers have none."""

    _link: Link

    async def list_joint_groups(self) -> list[ListedJointGroup]:
        """See `joint_groups`."""
        return await joint_groups(self._link)

    async def abort_joint_batch(self, group_id: str, location: str, sequence: int) -> AbortJointResponse:
        """Abort what is open of a batch, whatever its runs. Nothing is done to one that is decided. Raises
        RequestFailed."""
        response: AbortJointResponse = await self._of_joint_group(
            group_id, AbortJointRequest(group_id=group_id, location=location, sequence=sequence)
        )
        return response

    async def forget_joint_group(self, group_id: str) -> None:
        """Its next writer begins anew. Raises RequestFailed: JOINT_GROUP_OPEN, GROUP_ID_NOT_FOUND."""
        await self._of_joint_group(group_id, ForgetJointRequest(group_id=group_id))

    async def _of_joint_group(self, group_id: str, request: Any) -> Any:
        coordinator = TransactionCoordinator(self._link, group_id)

        async def ask() -> Any:
            try:
                response = await coordinator.call(request)
            except (NoProtocol, NotServed) as error:
                raise NotOurs(NOT_OURS) from error
            check(response)
            return response

        return await self._link.until(ask, self._link.options.default_api_timeout_ms)
