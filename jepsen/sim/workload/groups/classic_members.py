"""A member of the classic protocol in the simulation: it joins, shares units, commits, pauses, leaves and dies.

It speaks the protocol itself, one request at a time, and writes down what it sees (jepsen.checkers.group_history); in a
group of both protocols also which units it takes for its own (jepsen.checkers.owner_history). It gives up all units
before it joins again. A member whose commit has an unknown outcome is gone at once, so that a late request of it meets
a later generation. A static one comes back under its instance id, with another member id.
"""

from __future__ import annotations

import asyncio

from jepsen.checkers.group_history import Assigned, Commit, Sent
from jepsen.checkers.owner_history import Claims, OwnerHistory
from jepsen.sim.workload.groups.group_calls import ASIDE, REBALANCE_MS, SESSION_MS, UNITS_OF, Calls, Gone, fetch
from quorumlog.client.group.protocol import Subscription, read_assignment, write_assignment, write_subscription
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    GroupHeartbeatRequest,
    GroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    SyncGroupRequest,
)
from quorumlog.rpc.transport import NotDelivered, RpcError

PAUSES, LEAVES, COMMITS_FIRST, LINGERS, COMMITS_LATE, DAWDLES = 0.01, 0.5, 0.5, 0.1, 0.5, 0.4
"""Shares of its rounds, of its ends, of its returns from a pause, of the rebalances that it hears of, of its
generations, of the ids that it is given."""
DAWDLE_S = (0.1, 4.0)  # until it joins with its id, which may be forgotten by then
SUBSCRIPTION = write_subscription(Subscription((UNITS_OF,)))


class ClassicMember:
    def __init__(self, calls: Calls, owners: OwnerHistory | None = None, instance: str | None = None) -> None:
        self._group, self._calls, self._rng = calls.group, calls, calls.group.rng
        self._instance = instance
        self._claims = Claims(owners or OwnerHistory(), self._group.now_ns, SESSION_MS * 1_000_000)
        self._id, self._generation = "", -1
        self._offsets: dict[int, int] = {}  # of its units: the newest that it knows

    async def live(self) -> None:
        """Until it leaves. Raises Gone."""
        until_ns = self._group.now_ns() + int(self._rng.uniform(3, 25) * 1e9)
        try:
            while not self._group.stopping:
                await self._join_next()
                while await self._work():
                    if self._group.now_ns() > until_ns or self._group.stopping:
                        await self._end()
                        return
                self._claims.give_up_all()
                if self._rng.random() < LINGERS:
                    await self._linger()
        finally:
            self._claims.give_up_all()

    async def _end(self) -> None:
        """Leave, or die without a word."""
        self._claims.give_up_all()
        if self._rng.random() < LEAVES:
            leaving = LeavingMember(member_id=self._id, group_instance_id=self._instance)
            try:
                await self._calls.once(LeaveGroupRequest(group_id=self._group.group_id, members=(leaving,)))
            except RpcError:
                pass  # as if it had died
        raise Gone

    # --- join ---

    async def _join_next(self) -> None:
        """As one with two threads: a commit of the generation before may come behind the join."""
        former = self._generation
        await self._join()
        if former >= 0 and former != self._generation and self._rng.random() < COMMITS_LATE:
            for unit in self._offsets:
                await self._commit(unit, former)

    async def _join(self) -> None:
        """Until it has an assignment of a generation."""
        history = self._group.history
        while True:
            joined = await self._joined()
            members = () if joined.skip_assignment else tuple(one.member_id for one in joined.members)
            sent = {one: tuple(range(at, self._group.units, len(members))) for at, one in enumerate(members)}
            if members:
                history.sent.append(Sent(joined.generation_id, sent))
            request = SyncGroupRequest(
                group_id=self._group.group_id,
                generation_id=joined.generation_id,
                member_id=self._id,
                group_instance_id=self._instance,
                assignments=tuple(
                    MemberAssignment(member_id=one, assignment=write_assignment({UNITS_OF: units}))
                    for one, units in sent.items()
                ),
            )
            sent_ns = self._group.now_ns()
            synced = await self._calls.repeat(request, lambda answer: int(answer.error_code))
            if synced.error_code == ErrorCode.NONE:
                break
            self._check(synced.error_code)
        self._generation = joined.generation_id
        units = read_assignment(synced.assignment).get(UNITS_OF, ())
        told = (joined.leader, joined.protocol_name or "")
        history.assigned.append(Assigned(self._generation, self._id, units, self._group.now_ns(), *told))
        self._claims.take(units, self._id, sent_ns)
        self._group.counts["group generations"] = self._generation
        self._offsets = await fetch(self._calls, units)

    async def _joined(self) -> JoinGroupResponse:
        while True:
            request = JoinGroupRequest(
                group_id=self._group.group_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self._id,
                group_instance_id=self._instance,
                protocol_type="consumer",
                protocols=(GroupProtocol(name="units", metadata=SUBSCRIPTION),),
            )
            response: JoinGroupResponse = await self._calls.repeat(request, lambda answer: int(answer.error_code))
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self._id = response.member_id
                if self._instance is not None:
                    self._group.history.instances[self._id] = self._instance
            if response.error_code == ErrorCode.NONE:
                return response
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED and self._rng.random() < DAWDLES:
                await asyncio.sleep(self._rng.uniform(*DAWDLE_S))
            if response.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self._check(response.error_code)

    def _check(self, code: int) -> None:
        """Returns if the member has to join again. Raises Gone."""
        if code != ErrorCode.REBALANCE_IN_PROGRESS:
            raise Gone

    # --- work ---

    async def _work(self) -> bool:
        """One round of heartbeat and commits; False: the group rebalances. Raises Gone."""
        await asyncio.sleep(self._rng.expovariate(1 / 0.3))
        if self._rng.random() < PAUSES:
            await asyncio.sleep(SESSION_MS * 1.5 / 1000)  # it loses its session, and does not know
            if self._rng.random() < COMMITS_FIRST and not await self._commit_all():
                return False
        sent_ns = self._group.now_ns()
        code = await self._beat()
        if code != ErrorCode.NONE:
            self._check(code)
            return False
        self._claims.extend_in_time(sent_ns)
        return await self._commit_all()

    async def _linger(self) -> None:
        """Busy with records it is slow to join, and commits as before. Raises Gone when the group has gone on."""
        until_ns = self._group.now_ns() + int(self._rng.uniform(0.5, 8) * 1e9)
        while self._group.now_ns() < until_ns:
            await asyncio.sleep(self._rng.expovariate(1 / 0.4))
            await self._commit_all()
            code = await self._beat()
            if code != ErrorCode.NONE:
                self._check(code)

    async def _beat(self) -> int:
        request = GroupHeartbeatRequest(
            group_id=self._group.group_id,
            generation_id=self._generation,
            member_id=self._id,
            group_instance_id=self._instance,
        )
        response = await self._calls.repeat(request, lambda answer: int(answer.error_code))
        return int(response.error_code)

    async def _commit_all(self) -> bool:
        for unit in self._offsets:
            if self._rng.random() < 0.7 and not await self._commit(unit):
                return False
        return True

    async def _commit(self, unit: int, late: int | None = None) -> bool:
        """late: a generation that is over; then it is refused."""
        group = self._group
        generation = self._generation if late is None else late
        commit = Commit(unit, self._offsets[unit] + 1, generation, group.now_ns())
        group.history.commits.append(commit)
        partitions = (OffsetCommitPartition(index=unit, committed_offset=commit.offset),)
        request = OffsetCommitRequest(
            group_id=self._group.group_id,
            generation_id=generation,
            member_id=self._id,
            group_instance_id=self._instance,
            topics=(OffsetCommitTopic(name=UNITS_OF, partitions=partitions),),
        )
        try:
            response = await self._calls.once(request)
        except NotDelivered:
            commit.ended_ns = group.now_ns()
            return True  # it was not sent
        except RpcError as error:
            raise Gone from error
        codes = {response.error_code, *(one.error_code for topic in response.topics for one in topic.partitions)}
        if codes == {ErrorCode.NONE}:
            commit.ended_ns, commit.acked = group.now_ns(), True
            self._claims.committed(unit, self._id, commit.invoked_ns)
            self._offsets[unit] = commit.offset
            group.count("group commits")
            return True
        if codes & set(ASIDE):
            raise Gone  # it may yet be committed
        commit.ended_ns = group.now_ns()
        if late is not None:
            group.count("group commits too late")
            return False
        for code in sorted(codes - {ErrorCode.NONE}):
            self._check(code)
        return False
