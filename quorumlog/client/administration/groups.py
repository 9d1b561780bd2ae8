"""What an admin client asks of consumer groups: who is in them, what they have committed, and changes of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import RequestFailed
from quorumlog.client.group.coordinator import GroupCoordinator
from quorumlog.client.group.offsets import CommittedOffset, fetch_offsets, topics_to_commit, topics_to_fetch
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, TopicPartition
from quorumlog.messages.admin import ListedGroup, ListGroupsRequest, ListGroupsResponse
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    DeleteGroupsRequest,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribeGroupsRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
)

DEAD = "Dead"  # the state of a group that does not exist


class GroupDescription(NamedTuple):
    """coordinator: the broker that answered. A group that does not exist has the state Dead.

    group: of the classic protocol, or of the consumer protocol (KIP-848).
    """

    coordinator: NodeId
    group: DescribedGroup | DescribedConsumerGroup


class GroupAdmin:
    """A part of `AsyncAdmin`, which makes the link."""

    _link: Link

    async def list_groups(self, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
        """The groups of all brokers, by name. states, types: only these, in any case (Stable...; classic, consumer).

        Raises RequestFailed, RpcError if a broker has not answered in time: a list without its groups would be wrong.
        """
        await self._link.refresh([])
        request = ListGroupsRequest(states=tuple(states), types=tuple(types))

        async def of_broker(node_id: NodeId) -> tuple[ListedGroup, ...]:
            async def ask() -> tuple[ListedGroup, ...]:
                response: ListGroupsResponse = await self._link.call_node(node_id, request)
                check(response)
                return response.groups

            groups: tuple[ListedGroup, ...] = await self._link.until(ask, self._link.options.default_api_timeout_ms)
            return groups

        unique: dict[str, ListedGroup] = {}
        for node_id in sorted(self._link.cache.brokers):
            unique.update((group.group_id, group) for group in await of_broker(node_id))
        return sorted(unique.values(), key=lambda group: group.group_id)

    async def describe_group(self, group_id: str) -> GroupDescription:
        """Raises RequestFailed, but not for a group that does not exist."""
        coordinator = GroupCoordinator(self._link, group_id)
        classic = await _described(coordinator, DescribeGroupsRequest(groups=(group_id,)), group_id)
        if classic.group_state != DEAD:
            return GroupDescription(await coordinator.find(), classic)
        try:
            modern = await _described(coordinator, ConsumerGroupDescribeRequest(group_ids=(group_id,)), group_id)
        except RequestFailed as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:  # group.version is 0
                raise
            modern = None
        exists = modern is not None and modern.error_code == ErrorCode.NONE
        return GroupDescription(await coordinator.find(), modern if exists else classic)

    async def delete_group(self, group_id: str) -> None:
        """With all its offsets. Raises RequestFailed: GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP while it has members."""
        coordinator = GroupCoordinator(self._link, group_id)
        response = await coordinator.call(DeleteGroupsRequest(groups=(group_id,)))
        check(response)
        (result,) = response.results
        done_before = coordinator.in_doubt and result.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        if result.error_code != ErrorCode.NONE and not done_before:
            raise RequestFailed(ErrorCode(result.error_code), f"group {group_id!r}")

    async def group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, of all its partitions if None. A partition without an offset is not in it.

        require_stable: wait for open transactions that may still change an offset. Raises RequestFailed.
        """
        coordinator, limit_ms = GroupCoordinator(self._link, group_id), self._link.options.default_api_timeout_ms
        return await fetch_offsets(
            self._link, coordinator, group_id, partitions, limit_ms, require_stable=require_stable
        )

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, ErrorCode]:
        """Commit these offsets for a group without members; it is made if there is none. The error of each.

        UNKNOWN_MEMBER_ID: the group has members. Raises RequestFailed for an error of all.
        """
        request = OffsetCommitRequest(group_id=group_id, topics=topics_to_commit(offsets))
        response: OffsetCommitResponse = await GroupCoordinator(self._link, group_id).call(request)
        check(response)
        return {
            (topic.name, one.index): ErrorCode(one.error_code) for topic in response.topics for one in topic.partitions
        }

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Forget these offsets. The error of each: GROUP_SUBSCRIBED_TO_TOPIC while a member reads it.

        Raises RequestFailed for an error of all: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=tuple(
                OffsetDeleteTopic(name=topic.name, partitions=topic.partitions) for topic in topics_to_fetch(partitions)
            ),
        )
        response: OffsetDeleteResponse = await GroupCoordinator(self._link, group_id).call(request)
        check(response)
        return {
            (topic.name, one.index): ErrorCode(one.error_code) for topic in response.topics for one in topic.partitions
        }


async def _described(coordinator: GroupCoordinator, request: Any, group_id: str) -> Any:
    """The only group of the answer. Raises RequestFailed, but not for a group that does not exist."""
    response = await coordinator.call(request)
    check(response)
    (group,) = response.groups
    if group.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        raise RequestFailed(ErrorCode(group.error_code), group.error_message or f"group {group_id!r}")
    return group
