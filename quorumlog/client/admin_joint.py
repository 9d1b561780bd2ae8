"""What an admin client asks of joint groups (decision 112): which there are, and how what is open of one is aborted."""

from __future__ import annotations

from typing import Any

from quorumlog.client.admin_transactions import TransactionCoordinator
from quorumlog.client.link import Link, check
from quorumlog.ids import NodeId
from quorumlog.messages.joint import (
    AbortJointRequest,
    AbortJointResponse,
    ForgetJointRequest,
    ListedJointGroup,
    ListJointRequest,
    ListJointResponse,
)


class JointAdmin:
    """A part of `AsyncAdmin`, which makes the link. All of it is for clusters of ours: a call raises NoProtocol where
    the connection speaks Kafka's."""

    _link: Link

    async def list_joint_groups(self) -> list[ListedJointGroup]:
        """Of all brokers, by name. Raises RpcError if a broker has not answered in time: a list without its groups
        would be wrong."""
        await self._link.refresh([])
        found: dict[str, ListedJointGroup] = {}
        for node_id in sorted(self._link.cache.brokers):
            found.update((group.group_id, group) for group in await self._joint_groups_of(node_id))
        return [found[name] for name in sorted(found)]

    async def _joint_groups_of(self, node_id: NodeId) -> tuple[ListedJointGroup, ...]:
        async def ask() -> ListJointResponse:
            response: ListJointResponse = await self._link.call_node(node_id, ListJointRequest())
            check(response)
            return response

        response: ListJointResponse = await self._link.until(ask, self._link.options.default_api_timeout_ms)
        return response.groups

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
            response = await coordinator.call(request)
            check(response)
            return response

        return await self._link.until(ask, self._link.options.default_api_timeout_ms)
