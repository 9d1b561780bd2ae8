"""A cluster in memory whose broker 2 coordinates joint groups with the real core. is_on: the feature is in force."""

from __future__ import annotations

from typing import Any

from transactional_cluster import TransactionalCluster

from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import (
    AbortJointRequest,
    AbortJointResponse,
    BeginJointRequest,
    BeginJointResponse,
    CommitJointRequest,
    CommitJointResponse,
    ListJointRequest,
    ListJointResponse,
)
from tests.broker.coordinator.joint.joint_world import JointWorld


class JointCluster(TransactionalCluster):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.world: JointWorld = JointWorld(version=2, automark=False)
        self.is_on = True

    async def _BeginJointRequest(self, node: int, request: BeginJointRequest) -> BeginJointResponse:
        return await self._joint(node, "begin_joint", request, BeginJointResponse)

    async def _CommitJointRequest(self, node: int, request: CommitJointRequest) -> CommitJointResponse:
        return await self._joint(node, "commit_joint", request, CommitJointResponse)

    async def _AbortJointRequest(self, node: int, request: AbortJointRequest) -> AbortJointResponse:
        return await self._joint(node, "abort_joint", request, AbortJointResponse)

    async def _ListJointRequest(self, node: int, _request: ListJointRequest) -> ListJointResponse:
        return ListJointResponse(groups=tuple(self.world.listed_groups().values()) if node == self.coordinator else ())

    async def _joint(self, node: int, method: str, request: Any, response: type) -> Any:
        if not self.is_on:
            return response(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message="joint.version is at level 0")
        if node != self.coordinator:
            return response(error_code=ErrorCode.NOT_COORDINATOR)
        number = (self.world.call_long if method == "abort_joint" else self.world.call)(method, request)
        if self.marks:
            self.mark()
        return self.world.answers[number]
