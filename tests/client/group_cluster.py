"""A fake cluster whose broker 2 coordinates all groups, with the production core and no log behind it."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from fake_cluster import FakeCluster, TestClock

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    GroupHeartbeatRequest,
    GroupHeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from quorumlog.settings.groups import GroupConfig
from quorumlog_broker.coordinator.group_turn import Call, Write
from quorumlog_broker.coordinator.groups.shard import GroupShard
from tests.broker.coordinator.group_world import replay

MOVED = ErrorCode.NOT_COORDINATOR
NOT_COORDINATOR: dict[type, Any] = {
    JoinGroupRequest: JoinGroupResponse(error_code=MOVED),
    SyncGroupRequest: SyncGroupResponse(error_code=MOVED),
    GroupHeartbeatRequest: GroupHeartbeatResponse(error_code=MOVED),
    LeaveGroupRequest: LeaveGroupResponse(error_code=MOVED),
    OffsetCommitRequest: OffsetCommitResponse(error_code=MOVED),
    OffsetFetchGroup: OffsetFetchGroupResult(group_id="", error_code=MOVED),
}
OF_MEMBERS = {
    JoinGroupRequest: GroupShard.join,
    SyncGroupRequest: GroupShard.sync_group,
    GroupHeartbeatRequest: GroupShard.heartbeat,
    LeaveGroupRequest: GroupShard.leave,
    OffsetCommitRequest: GroupShard.commit_offsets,
}


class GroupCluster(FakeCluster):
    """coordinator: may be moved; nothing is lost by it, unless by `fail_over`."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.coordinator = 2
        self._ids = count()
        self.shard = self._new_shard()
        self.log: list[Write] = []
        self._calls = count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    def _new_shard(self) -> GroupShard:
        return GroupShard(GroupConfig(initial_rebalance_delay_ms=0), lambda: f"id-{next(self._ids)}")

    async def _ask(self, method: Any, argument: Any) -> Any:
        """What is written commits at once."""
        call = Call(next(self._calls), "tester", "/10.0.0.9")
        waiting = self._waiting[call.number] = asyncio.get_running_loop().create_future()
        self._step(lambda: method(call, argument))
        while not waiting.done():
            await asyncio.sleep(0.005)
            self._step(lambda: None)
        answer = waiting.result()
        return NOT_COORDINATOR[type(argument)] if answer is None else answer

    def _step(self, step: Any) -> None:
        now_ms = TestClock().now_ms()
        self.shard.at(now_ms, 1_700_000_000_000 + now_ms)
        step()
        for _ in range(3):  # what a timer or a commit sets off may write again
            self.shard.timers_due()
            writes, found = self.shard.take()
            self.log += writes
            for answer in found:
                self._waiting.pop(answer.call).set_result(answer.response)
            self.shard.committed(len(self.log))

    def fail_over(self, node: int) -> None:
        """Another broker coordinates, and has the log. Calls that wait hear of it."""
        self.coordinator = node
        self.shard = self._new_shard()
        now_ms = TestClock().now_ms()
        self.shard.at(now_ms, 1_700_000_000_000 + now_ms)
        replay(self.log, self.shard)
        self.shard.loaded(len(self.log))
        self.shard.committed(len(self.log))
        for waiting in self._waiting.values():
            waiting.set_result(None)
        self._waiting.clear()

    def is_asked(self, node: int) -> bool:
        return node == self.coordinator

    async def _FindCoordinatorRequest(self, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        address = self.brokers[self.coordinator]
        found = [Coordinator(key=key, node_id=self.coordinator, host=address.host, port=1) for key in request.keys]
        return FindCoordinatorResponse(coordinators=tuple(found))

    async def _ListGroupsRequest(self, node: int, request: ListGroupsRequest) -> ListGroupsResponse:
        return ListGroupsResponse(groups=self.shard.list() if self.is_asked(node) else ())

    async def _of_member(self, node: int, request: Any) -> Any:
        if not self.is_asked(node):
            return NOT_COORDINATOR[type(request)]
        return await self._ask(OF_MEMBERS[type(request)].__get__(self.shard), request)

    _JoinGroupRequest = _SyncGroupRequest = _GroupHeartbeatRequest = _LeaveGroupRequest = _of_member
    _OffsetCommitRequest = _of_member

    async def _DescribeGroupsRequest(self, node: int, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        if not self.is_asked(node):
            return DescribeGroupsResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return DescribeGroupsResponse(
            groups=tuple([await self._ask(self.shard.describe, name) for name in request.groups])
        )

    async def _ConsumerGroupDescribeRequest(
        self, node: int, request: ConsumerGroupDescribeRequest
    ) -> ConsumerGroupDescribeResponse:
        method = self.shard.describe_consumer_groups
        return ConsumerGroupDescribeResponse(
            groups=tuple([await self._ask(method, name) for name in request.group_ids])
        )

    async def _ConsumerGroupHeartbeatRequest(self, node: int, request: ConsumerGroupHeartbeatRequest) -> Any:
        return await self._ask(self.shard.consumer_heartbeat, request)

    async def _DeleteGroupsRequest(self, node: int, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        results = []
        for name in request.groups:
            moved = not self.is_asked(node)
            code = ErrorCode.NOT_COORDINATOR if moved else await self._ask(self.shard.delete_group, name)
            results.append(DeletedGroup(group_id=name, error_code=code))
        return DeleteGroupsResponse(results=tuple(results))

    async def _OffsetFetchRequest(self, node: int, request: OffsetFetchRequest) -> OffsetFetchResponse:
        return OffsetFetchResponse(
            groups=tuple([await self._ask(self.shard.fetch_offsets, one) for one in request.groups])
        )

    async def _OffsetDeleteRequest(self, node: int, request: OffsetDeleteRequest) -> Any:
        return await self._ask(self.shard.delete_offsets, request)
