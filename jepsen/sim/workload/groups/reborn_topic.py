"""Topics that are deleted and made again while transactions hold offsets of them.

An offset belongs to one life of its topic; the number of the life is in its thousands. A transaction takes an offset of
the life that there is, the topic is deleted and mostly made again, and only then the transaction ends. Then the group,
which has committed nothing in the new life, must have no offset of it. Each transaction is one of a new group, and each
request is sent once: a commit that arrives later than its answer would name the new topic, as calls go by names. The
topics take turns, as a deletion may also take what an earlier one has left behind.

- reborn-topic: when all is well again, no group has an offset of a life that has ended.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.checkers.findings import Finding
from jepsen.transactions.calls import GROUP, Calls, Unknown
from jepsen.transactions.producer import Lost, Producer, Refused
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopic,
    OffsetFetchTopics,
)
from quorumlog.rpc.transport import RpcError

REBORN = "reborn"
STAGED = "offsets of a reborn topic"
LIFE, TOPICS = 1_000, 8
REPLICAS = 3
GAP_S = 0.5
HELD_S, OPEN_S = (0.0, 0.1), (0.0, 1.0)  # before the deletion, and after it
GROUPS_MAX = 200


class RebornTopic:
    """calls, producer: of a client of its own. counts: for the report."""

    def __init__(
        self,
        rng: random.Random,
        admin: Callable[[], AsyncAdmin],
        calls: Callable[[], Calls],
        producer: Callable[[Calls], Producer],
        counts: dict[str, int],
    ) -> None:
        self._rng, self._admin, self._make_calls, self._producer, self._counts = rng, admin, calls, producer, counts
        self.stopping = False
        self._lives: dict[str, int] = {}  # by topic
        self._turn = 0
        self._groups: dict[str, str] = {}  # with the topic that was deleted while their transaction was open
        counts[STAGED] = 0

    async def run(self) -> None:
        while not self.stopping:
            calls = self._make_calls()
            try:
                producer = self._producer(calls)
                await producer.begin()
                while not self.stopping and len(self._groups) < GROUPS_MAX:
                    await asyncio.sleep(self._rng.expovariate(1 / GAP_S))
                    await self._transact(calls, producer)
                return
            except (Lost, Refused, Unknown):
                pass  # another life goes on
            finally:
                await calls.close()

    async def _transact(self, calls: Calls, producer: Producer) -> None:
        """Raises Lost, Refused, Unknown."""
        self._turn += 1
        topic = f"{REBORN}-{self._turn % TOPICS}"
        if not await self._make(topic):
            return
        group, life = f"{topic}-{self._turn}", self._lives.setdefault(topic, 0)
        producer.start()
        await producer.stage_offset(group, topic, 0, life * LIFE + self._turn % LIFE)
        await asyncio.sleep(self._rng.uniform(*HELD_S))
        if await self._delete(topic):
            self._groups[group] = topic
        await asyncio.sleep(self._rng.uniform(*OPEN_S))
        if self._rng.random() < 0.7:
            await self._make(topic)
        if await producer.end(committed=True):
            self._counts[STAGED] += 1

    # --- the topic ---

    async def _make(self, topic: str) -> bool:
        async with self._admin() as admin:
            try:
                await admin.create_topic(topic, 1, REPLICAS, exist_ok=True)
            except (QuorumlogError, RpcError):
                return False
        return True

    async def _delete(self, topic: str) -> bool:
        """Asked until it is gone: then what was committed before is of a life that has ended."""
        while not self.stopping:
            async with self._admin() as admin:
                try:
                    (result,) = await admin.delete_topics([topic])
                except (QuorumlogError, RpcError):
                    await asyncio.sleep(0.1)
                    continue
            if result.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                self._lives[topic] += 1
                return True
            await asyncio.sleep(0.1)
        return False

    # --- after everything has healed ---

    async def check(self) -> list[Finding]:
        """Of the topics as they are now: made again, if they are not there."""
        self.stopping = True
        for topic in self._lives:
            while not await self._make(topic):  # noqa: ASYNC110 - a broker has to answer, and tells nobody when it will
                await asyncio.sleep(0.1)
        calls, findings = self._make_calls(), []
        for group, topic in self._groups.items():
            offset, life = await self._fetched(calls, group, topic), self._lives[topic]
            if offset >= 0 and offset // LIFE < life:
                text = f"{group} has offset {offset} of life {offset // LIFE}; {topic} is in life {life} now"
                findings.append(Finding("reborn-topic", text))
        await calls.close()
        return findings

    async def _fetched(self, calls: Calls, group: str, topic: str) -> int:
        topics = OffsetFetchTopics(topics=(OffsetFetchTopic(name=topic, partitions=(0,)),))
        request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=group, topics=topics),), require_stable=True)
        while True:
            try:
                response = await calls.to_coordinator(GROUP, group, request)
            except RpcError:
                await asyncio.sleep(0.1)
                continue
            (answer,) = response.groups
            codes = {answer.error_code, *(one.error_code for found in answer.topics for one in found.partitions)}
            if codes == {ErrorCode.NONE}:
                return int(answer.topics[0].partitions[0].committed_offset)
            calls.forget_coordinator(GROUP, group)
            await asyncio.sleep(0.1)
