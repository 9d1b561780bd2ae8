"""Members of a group of the consumer protocol (KIP-848) as raw sockets: one heartbeat at a time, at the interval that
the coordinator tells, and one at once when the member has taken or given up partitions, as clients do."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable

from bench.raw.client import RETRY_S, TOPIC, Connection, to_coordinator
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MemberTopicPartitions,
    SubscribedTopicNames,
)

VERSION = 1
REBALANCE_MS = 60_000
NOTHING = MemberTopicPartitions()
JOINING = 0
LATER = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
SETTLED_S = 120.0


class ConsumerMember:
    """epoch: 0 until it is in the group. owned: (topic id, partition)."""

    def __init__(self, group_id: str, connection: Connection) -> None:
        self._group_id, self._connection = group_id, connection
        self.member_id = str(uuid.uuid4())
        self.epoch = JOINING
        self.owned: frozenset[tuple[bytes, int]] = frozenset()

    async def live(self) -> None:
        """Until it is cancelled."""
        taken: MemberTopicPartitions | None = None
        while True:
            answer = await self._beat(taken)
            if answer is None:
                await asyncio.sleep(RETRY_S)
                continue
            taken = answer.assignment
            if taken is None:
                await asyncio.sleep(answer.heartbeat_interval_ms / 1_000)
                continue
            found = taken.topic_partitions
            self.owned = frozenset((one.topic_id, index) for one in found for index in one.partitions)

    async def _beat(self, taken: MemberTopicPartitions | None) -> ConsumerGroupHeartbeatResponse | None:
        """None: the coordinator was not ready. taken: what it owns, if that has changed."""
        joins = self.epoch == JOINING
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=REBALANCE_MS if joins else -1,
            subscribed_topic_names=SubscribedTopicNames(names=(TOPIC,)) if joins else None,
            topic_partitions=NOTHING if joins else taken,
        )
        answer: ConsumerGroupHeartbeatResponse = await self._connection.ask(request, VERSION)
        if answer.error_code in LATER:
            return None
        assert answer.error_code == ErrorCode.NONE, f"ConsumerGroupHeartbeat: {answer}"
        self.epoch = answer.member_epoch
        return answer

    def die(self) -> None:
        """Its socket is closed, and nothing is said."""
        self._connection.close()


class ConsumerGroup:
    def __init__(self, members: list[ConsumerMember], partitions: int) -> None:
        self._members, self._partitions = members, partitions
        self._living: dict[ConsumerMember, asyncio.Task[None]] = {}

    @classmethod
    async def connected(cls, servers: str, group_id: str, members: int, partitions: int) -> ConsumerGroup:
        """partitions: of TOPIC, to which all subscribe."""
        return cls(
            [ConsumerMember(group_id, await to_coordinator(servers, group_id)) for _ in range(members)], partitions
        )

    async def join(self) -> None:
        """Until every partition has one owner and all are in the same epoch."""
        self._living = {one: asyncio.create_task(one.live()) for one in self._members}
        await self._until(self._is_stable)

    def _is_stable(self) -> bool:
        members = list(self._living)
        return len({one.epoch for one in members}) == 1 and self._is_shared()

    def _is_shared(self) -> bool:
        owned = [one.owned for one in self._living]
        return sum(map(len, owned)) == self._partitions == len(frozenset().union(*owned))

    async def lose_one(self) -> float:
        """Seconds from the death of a member that owns something until others own all partitions."""
        victim = next(one for one in self._living if one.owned)
        self._living.pop(victim).cancel()
        await asyncio.sleep(0)
        victim.die()
        begun = time.perf_counter()
        await self._until(self._is_shared)
        return time.perf_counter() - begun

    async def _until(self, true: Callable[[], bool]) -> None:
        """Raises TimeoutError; what a member raised."""
        async with asyncio.timeout(SETTLED_S):
            while not true():
                for task in self._living.values():
                    if task.done():
                        task.result()
                await asyncio.sleep(RETRY_S)

    async def end(self) -> None:
        """All of them die."""
        for task in self._living.values():
            task.cancel()
        await asyncio.gather(*self._living.values(), return_exceptions=True)
        for one in self._living:
            one.die()
