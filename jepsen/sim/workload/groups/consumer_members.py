"""A member of the consumer protocol (KIP-848) in the simulation: it joins, takes units, commits, pauses, leaves, dies.

It writes down which units it takes for its own, and when (jepsen.checkers.owner_history). Like its classic fellow it is
gone at once when it does not know whether a commit has happened. Some subscribe by a regular expression. Some are slow
to give up what they are asked for, and some of those go on beyond the time that they have; then they commit what is not
theirs any more, as one does that comes back from a pause. A static one comes back under its instance id.
"""

from __future__ import annotations

import asyncio
from itertools import count

from jepsen.checkers.findings import Finding
from jepsen.checkers.group_history import Commit
from jepsen.checkers.owner_history import Claims, OwnerHistory
from jepsen.sim.workload.groups.group_calls import ASIDE, REBALANCE_MS, SESSION_MS, UNITS_OF, Calls, Gone, Group, fetch
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MemberTopicPartitions,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    SubscribedTopicNames,
    TopicIdPartitions,
)
from quorumlog.rpc.transport import NotDelivered, RpcError

JOIN, LEAVE, PAUSE = 0, -1, -2
BEATS = 60  # of each member, until a group at rest has shared its units: the dead ones' sessions end meanwhile
PAUSE_S = 0.1
REGEX = UNITS_OF[:-1] + ".?"
# shares: of rounds, of returns from a pause, of members, of units to be given up, of heartbeats, of ends
PAUSES, COMMITS_FIRST, BY_REGEX, SLOWLY, SAYS_ALL, SAYS_SO = 0.015, 0.5, 0.3, 0.3, 0.4, 0.6
SLOW_S = (0.2, 8.0)  # more than the time that it has
_NS = 1_000_000_000
_ANEW = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
_numbers = count()


class ConsumerMember:
    """slowly: share of the units to be given up that it is slow about."""

    def __init__(
        self, calls: Calls, owners: OwnerHistory, instance: str | None = None, *, slowly: float = SLOWLY
    ) -> None:
        self._group, self._calls, self._rng = calls.group, calls, calls.group.rng
        self._instance, self._slowly = instance, slowly
        self._id = f"{calls.name}-{next(_numbers)}"
        self._epoch = JOIN
        self._by_regex = self._rng.random() < BY_REGEX
        self._topic_id = b""
        self._claims = Claims(owners, self._group.now_ns, SESSION_MS * 1_000_000)
        self._told: set[int] | None = None  # what the coordinator was told that it owns, and has answered
        self._given_up_ns: dict[int, int] = {}  # when it will give up what it was asked for
        self._offsets: dict[int, int] = {}  # of its units: the newest that it knows

    @property
    def units(self) -> set[int]:
        return self._claims.units

    async def live(self) -> None:
        """Until it leaves. Raises Gone."""
        until_ns = self._group.now_ns() + int(self._rng.uniform(3, 25) * 1e9)
        try:
            while not self._group.stopping:
                await asyncio.sleep(self._rng.expovariate(1 / 0.3))
                if self._rng.random() < PAUSES:
                    await asyncio.sleep(SESSION_MS * 1.5 / 1000)  # it loses its session, and does not know
                    if self._rng.random() < COMMITS_FIRST:
                        await self._commit_all()
                await self.beat()
                await self._commit_all()
                if self._group.now_ns() > until_ns:
                    break
            await self.end(says_so=self._rng.random() < SAYS_SO)
        finally:
            self._claims.give_up_all()

    async def end(self, *, says_so: bool) -> None:
        """Leave, for a moment if it is static; or die without a word. Raises Gone."""
        self._forget(self.units)
        if says_so:
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._group.group_id,
                member_id=self._id,
                member_epoch=LEAVE if self._instance is None else PAUSE,
                group_instance_id=self._instance,
            )
            try:
                await self._calls.once(request)
            except RpcError:
                pass  # as if it had died
        raise Gone

    # --- heartbeat ---

    async def beat(self) -> None:
        """One heartbeat, again and again until it is answered. Raises Gone."""
        sent_ns = self._group.now_ns()
        self._forget({unit for unit, at_ns in self._given_up_ns.items() if at_ns <= sent_ns})
        owned = self.units
        says_all = owned != self._told or self._rng.random() < SAYS_ALL
        response: ConsumerGroupHeartbeatResponse = await self._calls.repeat(
            self._request(owned if says_all else None),
            lambda answer: int(answer.error_code),
            again=self._request(owned, is_full=True),  # it may not have heard what the lost answer said
        )
        if response.error_code in _ANEW:
            self._forget(self.units)
            self._epoch, self._told = JOIN, None
            self._group.count("group members fenced")
            return
        if response.error_code != ErrorCode.NONE:
            raise Gone
        self._epoch, self._told = response.member_epoch, owned
        self._group.counts["group epochs"] = max(self._group.counts.get("group epochs", 0), self._epoch)
        self._claims.extend(sent_ns)
        if response.assignment is not None:
            await self._take(response.assignment, sent_ns)

    def _request(self, owned: set[int] | None, *, is_full: bool = False) -> ConsumerGroupHeartbeatRequest:
        """owned: None if nothing has changed since it was told."""
        partitions = None
        if owned is not None:
            units = TopicIdPartitions(topic_id=self._topic_id, partitions=tuple(sorted(owned)))
            partitions = MemberTopicPartitions(topic_partitions=(units,) if owned else ())
        says_all = is_full or self._epoch == JOIN
        names = SubscribedTopicNames(names=() if self._by_regex else (UNITS_OF,))
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group.group_id,
            member_id=self._id,
            member_epoch=self._epoch,
            group_instance_id=self._instance,
            rebalance_timeout_ms=REBALANCE_MS if says_all else -1,
            subscribed_topic_names=names if says_all else None,
            subscribed_topic_regex=REGEX if says_all and self._by_regex else None,
            topic_partitions=partitions,
        )

    async def _take(self, assignment: MemberTopicPartitions, sent_ns: int) -> None:
        given = {unit for topic in assignment.topic_partitions for unit in topic.partitions}
        self._topic_id = next((topic.topic_id for topic in assignment.topic_partitions), self._topic_id)
        for unit in sorted(self.units - given - self._given_up_ns.keys()):
            self._part_with(unit, sent_ns)
        for unit in given & self._given_up_ns.keys():
            del self._given_up_ns[unit]
        new = sorted(given - self.units)
        self._claims.take(sorted(given), self._id, sent_ns)
        if new:
            found = await fetch(self._calls, tuple(new))
            self._offsets |= {unit: offset for unit, offset in found.items() if unit in self.units}

    def _part_with(self, unit: int, asked_ns: int) -> None:
        """Now, or later: then perhaps too late, so that the coordinator has fenced it."""
        if self._rng.random() >= self._slowly:
            self._forget({unit})
            return
        self._claims.ends(unit, asked_ns + REBALANCE_MS * 1_000_000)
        self._given_up_ns[unit] = self._group.now_ns() + int(self._rng.uniform(*SLOW_S) * _NS)

    def _forget(self, units: set[int]) -> None:
        self._claims.give_up(sorted(units))
        for unit in units:
            self._given_up_ns.pop(unit, None)
            self._offsets.pop(unit, None)

    # --- commits ---

    async def _commit_all(self) -> None:
        for unit in sorted(self._offsets):
            if self._rng.random() < 0.7:
                await self._commit(unit)

    async def _commit(self, unit: int) -> None:
        group = self._group
        commit = Commit(unit, self._offsets[unit] + 1, self._epoch, group.now_ns())
        group.history.commits.append(commit)
        partitions = (OffsetCommitPartition(index=unit, committed_offset=commit.offset),)
        request = OffsetCommitRequest(
            group_id=group.group_id,
            generation_id=self._epoch,
            member_id=self._id,
            group_instance_id=self._instance,
            topics=(OffsetCommitTopic(name=UNITS_OF, partitions=partitions),),
        )
        try:
            response = await self._calls.once(request)
        except NotDelivered:
            commit.ended_ns = group.now_ns()
            return  # it was not sent
        except RpcError as error:
            raise Gone from error
        codes = {response.error_code, *(one.error_code for topic in response.topics for one in topic.partitions)}
        if codes == {ErrorCode.NONE}:
            commit.ended_ns, commit.acked = group.now_ns(), True
            self._claims.committed(unit, self._id, commit.invoked_ns)
            self._offsets[unit] = commit.offset
            group.count("group commits")
            return
        if codes & set(ASIDE):
            raise Gone  # it may yet be committed
        commit.ended_ns = group.now_ns()


async def converge(group: Group, owners: OwnerHistory) -> list[Finding]:
    """Two new members share the units within BEATS heartbeats, once nothing is disturbed any more (15)."""
    calls = [Calls(group, "final") for _ in range(2)]
    members = [ConsumerMember(one, owners, slowly=0) for one in calls]
    shared = False
    for _ in range(BEATS):
        for member in members:
            await member.beat()
        await asyncio.sleep(PAUSE_S)
        if sorted(len(member.units) for member in members) == [group.units // 2, group.units - group.units // 2]:
            shared = True
            break
    for one in calls:
        await one.close()
    found = [sorted(member.units) for member in members]
    name = "consumer-group-converges"
    return (
        [] if shared else [Finding(name, f"group {group.group_id}: after {BEATS} heartbeats its members own {found}")]
    )
