"""A fetch: read from the tail in memory, else from the disk beside the loop, else wait for more.

The leader answers it, or, for a consumer in its rack, a follower (`near_replicas.py`).

A follower's position acknowledges all that lies below it, once, when its fetch arrives. An error concerns its partition
alone and is answered at once; but a consumer that has nothing else to read waits for a log that this broker is about to
lead (`replicas/upcoming.py`). How far a reader may read: `isolation.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_EPOCH, NO_NODE, Epoch
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, ReplicaState
from quorumlog.turn import Signal, Turn
from quorumlog_broker.delayed.operations import DelayedOperations
from quorumlog_broker.delayed.purgatory import Reason
from quorumlog_broker.fetch.cached_partition import NO_FETCH_MS
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.counted_partition import Enough, FetchCount
from quorumlog_broker.fetch.counting_scope import CountedChanges, CountedNames
from quorumlog_broker.fetch.isolation import READ_UNCOMMITTED, isolation_of
from quorumlog_broker.fetch.near_replicas import NearReplicas, RackReader
from quorumlog_broker.fetch.partition_read import (
    ByteBudget,
    PartitionRead,
    fault_response,
    position_fault,
    read_elsewhere,
    read_from_memory,
    read_nothing,
    told,
)
from quorumlog_broker.fetch.read_log import read_committed_from_disk, read_from_disk
from quorumlog_broker.fetch.scope import FetchScope, scope_of
from quorumlog_broker.fetch.session import FetchSession
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.partition.events import FollowerFetched, UnnamedFetch
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step
from quorumlog_broker.replicas.throttle import ReplicationThrottle
from quorumlog_broker.replicas.upcoming import UpcomingLeaderships
from quorumlog_storage.rules.isolation import Isolation


class FetchParams(NamedTuple):
    """The fetch waits up to `max_wait_ms` while it has fewer than `min_bytes` and no partition completes it. A response
    that is full by `max_bytes` is enough in any case, as in Kafka. reader: a consumer that names its rack."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int = READ_UNCOMMITTED
    reader: RackReader | None = None

    @property
    def enough(self) -> Enough:
        return Enough(min(self.min_bytes, self.max_bytes))


class FetchPath:
    def __init__(
        self,
        clock: Clock,
        registry: Registry,
        delayed: DelayedOperations,
        step: Step,
        turn: Turn,
        upcoming: UpcomingLeaderships,
        near: NearReplicas,
        throttle: ReplicationThrottle | None = None,
    ) -> None:
        """throttle: of what followers read; None: none."""
        self._clock = clock
        self._registry = registry
        self._delayed = delayed
        self._step = step
        self._turn = turn
        self._upcoming = upcoming
        self._near = near
        self._throttle = throttle

    async def fetch(
        self, context: FetchContext, params: FetchParams
    ) -> tuple[list[FetchPartitionResponse], list[bool]]:
        """Responses to `context.targets`, and of each whether there is more to read than the reader has.

        Raises ApiError(INVALID_FETCH_SESSION_EPOCH) if the session goes on without this request.
        """
        deadline_ms = self._clock.now_ms() + params.max_wait_ms
        replica = context.replica
        if replica is not None:
            self._acknowledge(context.targets, replica, context.previous_session)
        isolation = isolation_of(params.isolation_level, is_replica=replica is not None)
        scope = self._scope(context, isolation, params)
        while True:
            targets = scope.next_read()
            reads = await self._read_partitions(targets, replica, isolation, params)
            left_ms = deadline_ms - self._clock.now_ms()
            is_over = left_ms <= 0 or context.is_empty or _is_complete(reads, params.enough)
            self._settle(reads, replica, is_sent=is_over)
            context.check_current()
            if is_over:
                self._count(reads, is_replica=replica is not None)
                has_more = [read.has_more(target.partition) for read, target in zip(reads, targets, strict=True)]
                return [read.response for read in reads], has_more
            held_ms = [read.held_back_ms for read in reads if read.held_back_ms]
            await self._wait(scope, reads, isolation, min([left_ms, *held_ms]))
            context.check_current()

    def _acknowledge(self, targets: Sequence[FetchTarget], replica: ReplicaState, session: FetchSession | None) -> None:
        """session: in which the follower has fetched these partitions until now, perhaps without naming them."""
        for topic, wanted in targets:
            try:
                found = self._registry.find(topic, wanted.index)
                log = found.leading(wanted.current_leader_epoch)
            except ApiError:
                continue  # the read that follows answers with this error
            if position_fault(log, wanted) is None:
                unnamed_ms = NO_FETCH_MS if session is None else session.take_unnamed_fetch_ms(found.key)
                if unnamed_ms != NO_FETCH_MS:
                    self._step(found, UnnamedFetch(replica.replica_id, replica.broker_epoch, unnamed_ms))
                fetched = FollowerFetched(
                    replica.replica_id, replica.broker_epoch, wanted.fetch_offset, wanted.log_start_offset
                )
                self._step(found, fetched)

    # --- reading ---

    async def _read_partitions(
        self, targets: Sequence[FetchTarget], replica: ReplicaState | None, isolation: Isolation, params: FetchParams
    ) -> list[PartitionRead]:
        budget = ByteBudget(params.max_bytes)
        reads = [self._read(target, replica, isolation, budget, params.reader) for target in targets]
        try:
            for read, target in zip(reads, targets, strict=True):
                if read.disk_bytes:
                    await self._read_from_disk(read, target.partition)
        except Busy:
            pass  # the answer holds what there is; the reader asks for the rest again
        except asyncio.CancelledError:
            self._settle(reads, replica, is_sent=False)
            raise
        return reads

    def _read(
        self,
        target: FetchTarget,
        replica: ReplicaState | None,
        isolation: Isolation,
        budget: ByteBudget,
        reader: RackReader | None,
    ) -> PartitionRead:
        wanted = target.partition
        try:
            found = self._registry.find(target.topic, wanted.index)
            log = self._near.log_for(found, _expected_epoch(wanted, replica), reader)
            _require_replica(found, replica)
        except ApiError as error:
            upcoming = self._upcoming.key_of(error, target.topic, wanted.index) if replica is None else None
            return self._refused(target, error, upcoming)
        fault = position_fault(log, wanted)
        if fault is not None:
            return PartitionRead(fault_response(fault, found, log, wanted.index), completes_fetch=True)
        if reader is not None and (node := self._near.preferred(found, wanted.fetch_offset, reader)) != NO_NODE:
            return read_elsewhere(found, log, wanted.index, isolation, node)
        if replica is None or self._throttle is None or not self._throttle.is_on:
            return read_from_memory(found, log, wanted, isolation, budget)
        held_ms = self._throttle.held_back_ms(found.key, replica.replica_id)
        if held_ms:
            return read_nothing(found, log, wanted, isolation, held_ms)
        allowed_bytes = self._throttle.left_bytes(found.key, replica.replica_id, wanted.max_bytes)
        read = read_from_memory(found, log, replace(wanted, max_bytes=allowed_bytes), isolation, budget)
        read.charged_bytes = self._throttle.charge(found.key, replica.replica_id, read.disk_bytes or read.size_bytes)
        return read

    def _settle(self, reads: Sequence[PartitionRead], replica: ReplicaState | None, *, is_sent: bool) -> None:
        """A read is charged to the throttle at once, because other partitions and fetches share what is left. What it
        did not bring, or is not sent, is given back."""
        if replica is None or self._throttle is None or not self._throttle.is_on:
            return
        for read in reads:
            size_bytes = read.size_bytes if is_sent else 0
            if read.charged_bytes:
                self._throttle.settle(read.charged_bytes, size_bytes)
            elif size_bytes and read.replica is not None:
                self._throttle.spend(read.replica.key, replica.replica_id, size_bytes)

    def _count(self, reads: Sequence[PartitionRead], *, is_replica: bool) -> None:
        traffic = self._registry.traffic
        for read in reads:
            if read.response.error_code:
                traffic.fetch_failed += 1
            elif is_replica:
                traffic.replication_out += len(read.response.records)
            elif read.replica is not None:
                read.replica.traffic.bytes_out += len(read.response.records)

    def _refused(self, target: FetchTarget, error: ApiError, upcoming: PartitionKey | None) -> PartitionRead:
        index = target.partition.index
        leader = self._registry.current_leader(target.topic, index)
        response = FetchPartitionResponse(index=index, error_code=error.code, current_leader=leader)
        return PartitionRead(response, completes_fetch=upcoming is None, upcoming=upcoming)

    async def _read_from_disk(self, read: PartitionRead, wanted: FetchPartition) -> None:
        found = read.replica
        assert found is not None and found.log is not None
        try:
            read_part = read_committed_from_disk if read.only_committed else read_from_disk
            part = await read_part(found, found.log, wanted.fetch_offset, read.disk_bytes, read.readable_end)
            found.readable(read.leader_epoch)  # records of a leadership that has ended must not be sent
        except Busy:
            raise
        except ApiError as error:
            read.response = FetchPartitionResponse(
                index=wanted.index, error_code=error.code, current_leader=found.current_leader
            )
            read.completes_fetch = True
        else:
            read.response = replace(read.response, records=part.data, aborted_transactions=told(part.aborted))
            read.is_cut, read.disk_bytes = part.is_cut, 0

    # --- waiting ---

    def _scope(self, context: FetchContext, isolation: Isolation, params: FetchParams) -> FetchScope:
        """Where any change is enough, there is nothing to count; a follower reads whatever comes."""
        enough = params.enough
        if isolation is Isolation.LOG_END or enough.needed_bytes <= 1:
            return scope_of(context, isolation)
        log_for = partial(self._near.log_for, reader=params.reader)
        new_count = partial(FetchCount, self._registry, log_for, isolation, enough)
        if context.incremental is not None:
            return CountedChanges(context, context.incremental, new_count)
        queue = self._delayed.readable(isolation)
        return CountedNames(context.named, isolation, new_count, queue, params.max_wait_ms)

    async def _wait(
        self, scope: FetchScope, reads: Sequence[PartitionRead], isolation: Isolation, left_ms: int
    ) -> None:
        """Wait until something in the scope has changed, or `left_ms` have passed."""
        woken = Signal()

        def wake(_reason: Reason = Reason.STATE) -> None:
            woken.fire(self._turn)

        watched = scope.watch(reads, wake)
        if watched is None:
            return
        queue = self._delayed.readable(isolation)
        waiter = queue.watch(watched, left_ms, wake)
        upcoming = [read.upcoming for read in reads if read.upcoming is not None]
        unwatch = self._upcoming.watch(upcoming, left_ms, wake) if upcoming else _nothing
        try:
            await woken
        finally:
            queue.cancel(waiter)
            unwatch()
            scope.unwatch(wake)


def _nothing() -> None:
    """No leadership is waited for."""


def _is_complete(reads: Sequence[PartitionRead], enough: Enough) -> bool:
    if any(read.completes_fetch for read in reads):
        return True
    return enough.reached(sum([read.filled_bytes for read in reads]), sum([read.batches for read in reads]))


def _expected_epoch(wanted: FetchPartition, replica: ReplicaState | None) -> Epoch | None:
    """A follower always names its epoch; a consumer may not know one."""
    if replica is None and wanted.current_leader_epoch == NO_EPOCH:
        return None
    return wanted.current_leader_epoch


def _require_replica(found: Replica, replica: ReplicaState | None) -> None:
    if replica is not None and replica.replica_id not in found.core.replicas:
        text = f"broker {replica.replica_id} is no replica of {found.name}"
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
