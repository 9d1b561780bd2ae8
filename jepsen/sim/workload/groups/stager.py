"""A producer that commits offsets of a group in transactions. The same offsets are committed plainly, too, deleted, and
expire meanwhile.

It belongs to no group, as a visitor (visitor.py). Its plain commits are kept for a moment only, so that they are due
while its transaction is open, which then has a later one of them. In others a plain commit follows that of the open
transaction: it is the newer one, whenever the transaction is committed.

Some offsets are deleted, most of them while its transaction holds them; some of those are committed once more in the
same transaction. Each offset is another number, so that a fetch tells which commit it shows.

It goes on as another producer for another group when it does not know what a plain commit or a deletion has done; what
an earlier one has left open is ended by the new epoch.
"""

from __future__ import annotations

import asyncio

from jepsen.checkers.group_history import Commit, Deletion
from jepsen.sim.workload.groups.group_calls import ASIDE, UNITS, UNITS_OF, Calls, Gone, fetch
from jepsen.transactions.calls import Unknown
from jepsen.transactions.producer import Lost, Producer, Refused
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
)
from quorumlog.rpc.transport import NotDelivered, RpcError

TIMEOUT_MS = 6_000
GAP_S = 0.3
KEPT_MS = 500  # of some plain commits
OPEN_S = (0.1, 2.5)
FIRST, FOLLOWS, COMMITS, KEEPS_SHORT = 0.7, 0.5, 0.7, 0.5
DELETES_PENDING, DELETES_COMMITTED, STAGES_AGAIN = 0.4, 0.1, 0.3
RESTAGED = "offsets committed again after their deletion"


class Stager:
    """producer: not begun yet; of this life only."""

    def __init__(self, calls: Calls, producer: Producer) -> None:
        self._calls, self._group, self._rng = calls, calls.group, calls.group.rng
        self._producer = producer
        self._newest = 0

    async def live(self) -> None:
        """Raises Gone."""
        try:
            await self._producer.begin()
            while not self._group.stopping:
                await asyncio.sleep(self._rng.expovariate(1 / GAP_S))
                await self._transact(self._rng.randrange(UNITS))
        except (Lost, Refused, Unknown) as error:
            raise Gone from error

    async def _transact(self, unit: int) -> None:
        """Raises Gone, Lost, Refused, Unknown."""
        if self._rng.random() < FIRST:
            await self._commit(unit, KEPT_MS if self._rng.random() < KEEPS_SHORT else -1)
        self._producer.start()
        staged = await self._stage(unit)
        await asyncio.sleep(self._rng.uniform(*OPEN_S))
        if deletes := self._rng.random() < DELETES_PENDING:
            await self._delete(unit)
            if self._rng.random() < STAGES_AGAIN:
                staged = await self._stage(unit)
                self._group.count(RESTAGED)
        if self._rng.random() < FOLLOWS:
            await self._commit(unit, -1)
        wants = self._rng.random() < COMMITS
        if not await self._producer.end(committed=wants):
            raise Lost("the end of a transaction was refused")
        staged.ended_ns, staged.acked = self._group.now_ns(), wants
        self._group.count("group commits staged")
        await fetch(self._calls, (unit,), stable=deletes)
        if self._rng.random() < DELETES_COMMITTED:
            await self._delete(unit)

    async def _stage(self, unit: int) -> Commit:
        """Raises Lost, Refused."""
        staged = self._next(unit)
        await self._producer.stage_offset(self._group.group_id, UNITS_OF, unit, staged.offset)
        staged.staged_ns = self._group.now_ns()
        return staged

    async def _delete(self, unit: int) -> None:
        """It may be refused. Raises Gone when it is not known whether it happened."""
        topics = (OffsetDeleteTopic(name=UNITS_OF, partitions=(unit,)),)
        invoked_ns = self._group.now_ns()
        try:
            response = await self._calls.once(OffsetDeleteRequest(group_id=self._group.group_id, topics=topics))
        except NotDelivered:
            return
        except RpcError as error:
            raise Gone from error
        codes = {response.error_code, *(one.error_code for topic in response.topics for one in topic.partitions)}
        if codes & set(ASIDE):
            raise Gone  # it may yet happen
        if codes == {ErrorCode.NONE}:
            self._group.history.deletions.append(Deletion(unit, invoked_ns, self._group.now_ns()))

    def _next(self, unit: int) -> Commit:
        self._newest += 1
        commit = Commit(unit, self._newest, -1, self._group.now_ns())
        self._group.history.commits.append(commit)
        return commit

    async def _commit(self, unit: int, kept_ms: int) -> None:
        """kept_ms: -1 for as long as the brokers keep offsets. Raises Gone when it is not known whether it happened."""
        commit = self._next(unit)
        partitions = (OffsetCommitPartition(index=unit, committed_offset=commit.offset),)
        topics = (OffsetCommitTopic(name=UNITS_OF, partitions=partitions),)
        request = OffsetCommitRequest(group_id=self._group.group_id, topics=topics, retention_time_ms=kept_ms)
        try:
            response = await self._calls.once(request)
        except NotDelivered:
            commit.ended_ns = self._group.now_ns()
            return
        except RpcError as error:
            raise Gone from error
        codes = {response.error_code, *(one.error_code for topic in response.topics for one in topic.partitions)}
        if codes & set(ASIDE):
            raise Gone  # it may yet be committed
        commit.ended_ns, commit.acked = self._group.now_ns(), codes == {ErrorCode.NONE}
