"""A fetch at the leader: from the tail in memory, else from the disk beside the loop, else waiting for more.

A consumer reads below the high watermark, a follower to the published end; a follower's position acknowledges all that
lies below it, once, when its fetch arrives. Errors concern their partition alone and are answered at once.

A request of an incremental session costs what it names and what has changed, not what the session holds
(`fetch_session.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from broker.delayed.operations import DelayedOperations
from broker.delayed.purgatory import Reason
from broker.fetch.partition_read import Allowance, Look, bound_of, position_fault, records_of, told_of
from broker.fetch.session import NOT_HEARD_MS, FetchSession
from broker.fetch.sessions import FetchTurn
from broker.partition.events import FollowerFetched, FollowerHeard
from broker.partition.key import PartitionKey
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica, Step
from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset, Uuid
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, ReplicaState
from storage.disk import DiskError
from storage.log_file import CorruptBatch
from storage.log_view import OffsetOutOfRange


class FetchTarget(NamedTuple):
    """One partition of a fetch. topic: 16 bytes of topic id, or a name."""

    topic: Uuid | str
    partition: FetchPartition


class FetchPath:
    def __init__(self, clock: Clock, registry: Registry, delayed: DelayedOperations, step: Step) -> None:
        self._clock = clock
        self._registry = registry
        self._delayed = delayed
        self._step = step

    async def fetch(
        self,
        targets: Sequence[FetchTarget],
        *,
        replica: ReplicaState | None,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        ended: FetchSession | None = None,
    ) -> list[FetchPartitionResponse]:
        """See `ReplicaManager.fetch`."""
        deadline_ms = self._clock.now_ms() + max_wait_ms
        if replica is not None:
            self._acknowledge(targets, replica, ended)
        while True:
            looks = await self._look_at_all(targets, replica, max_bytes)
            enough = sum(look.size_bytes for look in looks) >= min_bytes or any(look.final for look in looks)
            left_ms = deadline_ms - self._clock.now_ms()
            if enough or left_ms <= 0 or not looks:
                return [look.answer for look in looks]
            await self._wait(looks, replica, left_ms)

    async def fetch_changed(
        self, turn: FetchTurn, *, max_wait_ms: int, min_bytes: int, max_bytes: int
    ) -> tuple[list[FetchPartitionResponse], list[bool]]:
        """See `ReplicaManager.fetch_changed`."""
        session, replica = turn.incremental, turn.replica
        assert session is not None
        deadline_ms = self._clock.now_ms() + max_wait_ms
        if replica is not None:
            self._acknowledge(_targets_of(turn), replica, session)
        while True:
            session.look()
            targets = _targets_of(turn)
            looks = await self._look_at_all(targets, replica, max_bytes)
            turn.check_current()
            enough = sum(look.size_bytes for look in looks) >= min_bytes or any(look.final for look in looks)
            left_ms = deadline_ms - self._clock.now_ms()
            if enough or left_ms <= 0:
                behind = [look.is_behind(target.partition) for look, target in zip(looks, targets, strict=True)]
                return [look.answer for look in looks], behind
            await self._wait_for_news(session, replica, left_ms)
            turn.check_current()

    # --- one partition ---

    def _acknowledge(self, targets: Sequence[FetchTarget], replica: ReplicaState, session: FetchSession | None) -> None:
        """session: in which these partitions were fetched until now, perhaps without being named."""
        for target in targets:
            try:
                found = self._registry.find(target.topic, target.partition.index)
                log = found.leading(target.partition.current_leader_epoch)
            except ApiError:
                continue  # the look that follows says so
            if position_fault(log, target.partition) is None:
                wanted = target.partition
                heard_ms = NOT_HEARD_MS if session is None else session.take_heard_ms(found.key)
                if heard_ms != NOT_HEARD_MS:
                    self._step(found, FollowerHeard(replica.replica_id, replica.broker_epoch, heard_ms))
                self._step(
                    found,
                    FollowerFetched(
                        replica.replica_id, replica.broker_epoch, wanted.fetch_offset, wanted.log_start_offset
                    ),
                )

    def _look(self, target: FetchTarget, replica: ReplicaState | None, allowance: Allowance) -> Look:
        wanted = target.partition
        try:
            found = self._registry.find(target.topic, wanted.index)
            log = found.leading(_epoch_asked(wanted, replica))
            _require_replica(found, replica)
        except ApiError as error:
            return self._refused(target, error)
        fault = position_fault(log, wanted)
        if fault is not None:
            return Look(told_of(fault, found, log, wanted.index), final=True)
        return records_of(found, log, wanted, replica, allowance)

    def _refused(self, target: FetchTarget, error: ApiError) -> Look:
        leader = self._registry.current_leader(target.topic, target.partition.index)
        answer = FetchPartitionResponse(index=target.partition.index, error_code=error.code, current_leader=leader)
        return Look(answer, final=True)

    # --- all of them ---

    async def _look_at_all(
        self, targets: Sequence[FetchTarget], replica: ReplicaState | None, max_bytes: int
    ) -> list[Look]:
        allowance = Allowance(max_bytes)
        looks = [self._look(target, replica, allowance) for target in targets]
        for look, target in zip(looks, targets, strict=True):
            if look.cold_bytes:
                await self._read_from_disk(look, target.partition.fetch_offset)
        return looks

    async def _read_from_disk(self, look: Look, offset: Offset) -> None:
        found = look.replica
        assert found is not None and found.log is not None and found.queue is not None
        log, max_bytes, bound = found.log, look.cold_bytes, look.bound
        try:
            records = await found.queue.read(lambda: log.read(offset, max_bytes, upper_bound=bound))
            found.leading(look.epoch)  # an answer of a leadership that is over must not look like one of it
        except OffsetOutOfRange:
            self._fail(look, ErrorCode.OFFSET_OUT_OF_RANGE)
        except (DiskError, CorruptBatch):
            self._fail(look, ErrorCode.KAFKA_STORAGE_ERROR)
        except ApiError as error:
            self._fail(look, error.code)
        else:
            look.answer = replace(look.answer, records=records)

    def _fail(self, look: Look, code: ErrorCode) -> None:
        assert look.replica is not None
        look.answer = FetchPartitionResponse(
            index=look.answer.index, error_code=code, current_leader=look.replica.current_leader
        )
        look.final = True

    async def _wait(self, looks: Sequence[Look], replica: ReplicaState | None, left_ms: int) -> None:
        """Until any of the logs has more than was seen, or something else happened to one."""
        if any(look.replica is not None and bound_of(look.replica, replica) > look.bound for look in looks):
            return  # while the disk was read
        wanted: dict[PartitionKey, Offset] = {
            look.replica.key: look.bound + 1 for look in looks if look.replica is not None
        }
        await self._wait_in_room(list(wanted.items()), replica, left_ms)

    async def _wait_for_news(self, session: FetchSession, replica: ReplicaState | None, left_ms: int) -> None:
        """Until something has changed in the session since its last look."""
        if session.has_news:
            return  # while the disk was read
        await self._wait_in_room((), replica, left_ms, session)

    async def _wait_in_room(
        self,
        wanted: Sequence[tuple[PartitionKey, Offset]],
        replica: ReplicaState | None,
        left_ms: int,
        session: FetchSession | None = None,
    ) -> None:
        room = self._delayed.commits if replica is None else self._delayed.ends
        woken: asyncio.Future[Reason] = asyncio.get_running_loop().create_future()

        def wake(reason: Reason = Reason.STATE) -> None:
            if not woken.done():
                woken.set_result(reason)

        if session is not None:
            session.wake = wake
        waiter = room.watch(wanted, left_ms, wake)
        try:
            await woken
        finally:
            room.cancel(waiter)
            if session is not None and session.wake is wake:  # not that of a request which has overtaken this one
                session.wake = None


def _targets_of(turn: FetchTurn) -> list[FetchTarget]:
    return [FetchTarget(topic, partition) for topic, partition in turn.wanted]


def _epoch_asked(wanted: FetchPartition, replica: ReplicaState | None) -> Epoch | None:
    """A follower always says its epoch (RELIABILITY §replication, rule 3); a consumer may not know one."""
    if replica is None and wanted.current_leader_epoch == NO_EPOCH:
        return None
    return wanted.current_leader_epoch


def _require_replica(found: Replica, replica: ReplicaState | None) -> None:
    if replica is not None and replica.replica_id not in found.core.replicas:
        text = f"broker {replica.replica_id} is no replica of {found.name}"
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
