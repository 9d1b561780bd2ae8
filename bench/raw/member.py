"""Members of a classic group as raw sockets: they join, take what the leader assigns, and leave."""

from __future__ import annotations

import asyncio
import time

from bench.raw.client import RETRY_S, Connection, to_coordinator
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    GroupHeartbeatRequest,
    GroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    SyncGroupRequest,
)

SESSION_MS, REBALANCE_MS = 10_000, 60_000
HEARTBEAT_S = 1.0  # of a group that loses one
JOIN_VERSION, SYNC_VERSION, LEAVE_VERSION = 7, 5, 4
PROTOCOLS = (GroupProtocol(name="range", metadata=bytes(60)),)
ASSIGNMENT = bytes(60)


class Member:
    """generation: -1 while it is in none."""

    def __init__(self, group_id: str, connection: Connection) -> None:
        self._group_id, self._connection = group_id, connection
        self.member_id, self.generation, self.members = "", -1, 0

    async def join(self) -> None:
        """Into a generation whose assignment it has."""
        while True:
            joined = await self._joined()
            given = tuple(MemberAssignment(member_id=one.member_id, assignment=ASSIGNMENT) for one in joined.members)
            request = SyncGroupRequest(
                group_id=self._group_id,
                generation_id=joined.generation_id,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=given if joined.leader == self.member_id else (),
            )
            synced = await self._connection.ask(request, SYNC_VERSION)
            if synced.error_code == ErrorCode.NONE:
                self.generation = joined.generation_id
                return
            assert synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS, f"SyncGroup: {synced}"

    async def _joined(self) -> JoinGroupResponse:
        while True:
            request = JoinGroupRequest(
                group_id=self._group_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=PROTOCOLS,
            )
            joined: JoinGroupResponse = await self._connection.ask(request, JOIN_VERSION)
            if joined.error_code == ErrorCode.NONE:
                return joined
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
            else:
                retriable = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                assert joined.error_code in retriable, f"JoinGroup: {joined}"
                await asyncio.sleep(RETRY_S)

    async def still_in(self) -> bool:
        """Its generation is the newest: a heartbeat says so."""
        request = GroupHeartbeatRequest(
            group_id=self._group_id, generation_id=self.generation, member_id=self.member_id
        )
        response = await self._connection.ask(request, 4)
        return bool(response.error_code == ErrorCode.NONE)

    def die(self) -> None:
        """Its socket is closed, and nothing is said."""
        self._connection.close()

    async def leave(self) -> None:
        leaving = (LeavingMember(member_id=self.member_id),)
        await self._connection.ask(LeaveGroupRequest(group_id=self._group_id, members=leaving), LEAVE_VERSION)
        self._connection.close()


class Group:
    """members: those that live."""

    def __init__(self, members: list[Member]) -> None:
        self._members = members

    @classmethod
    async def connected(cls, servers: str, group_id: str, members: int) -> Group:
        return cls([Member(group_id, await to_coordinator(servers, group_id)) for _ in range(members)])

    async def join(self) -> None:
        """Until all have the same generation. A member that is told of a newer one joins again, as clients do."""
        await asyncio.gather(*(self._settle(member) for member in self._members))

    async def _settle(self, member: Member) -> None:
        await member.join()
        while len({one.generation for one in self._members}) > 1:
            if not await member.still_in():
                await member.join()
            else:
                await asyncio.sleep(RETRY_S)

    async def lose_one(self) -> float:
        """Seconds from the death of a member, right after a heartbeat of it, until all others have been assigned anew.

        The others beat every HEARTBEAT_S, each at its own moment, and join when they are told to.
        """
        victim = self._members.pop()
        assert await victim.still_in(), "it was not in the group"
        victim.die()
        before, begun = victim.generation, time.perf_counter()
        share_s = HEARTBEAT_S / len(self._members)
        await asyncio.gather(*(self._join_again(one, number * share_s) for number, one in enumerate(self._members)))
        assert {one.generation for one in self._members} != {before}, "nobody was told that it died"
        return time.perf_counter() - begun

    async def _join_again(self, member: Member, after_s: float) -> None:
        await asyncio.sleep(after_s)
        while True:
            if not await member.still_in():
                await member.join()
                return
            await asyncio.sleep(HEARTBEAT_S)

    async def end(self) -> None:
        """All of them leave."""
        for member in self._members:
            await member.leave()
