"""Deletion of records (KIP-107): the leader moves its log start, followers adopt it, and the request waits for them.

The low watermark is the smallest log start of the leader, its live followers, and every member of ISR and ELR, alive or
not: no replica that may lead without loss has records below it, so what went does not come back with another leader.
The time-out of a request bounds the wait for followers; the leader's own disk has OWN_DISK_MS more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset, Uuid
from quorumlog_broker.delayed.operations import DelayedOperations
from quorumlog_broker.delayed.purgatory import Reason, Waiter
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import Lane
from quorumlog_broker.partition.events import LogStartMoved
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step
from quorumlog_broker.replicas.upcoming import UpcomingLeaderships

ALL_COMMITTED: Offset = -1  # a target that means the high watermark
OWN_DISK_MS = 5_000  # a disk that takes longer is a hung one (`log.dir.stall.ms`)


class DeletePath:
    def __init__(
        self, registry: Registry, delayed: DelayedOperations, step: Step, upcoming: UpcomingLeaderships
    ) -> None:
        self._registry = registry
        self._delayed = delayed
        self._step = step
        self._upcoming = upcoming

    def delete(self, topic: Uuid | str, index: int, offset: Offset, timeout_ms: int) -> Awaitable[Offset]:
        """Delete the records before `offset` (-1: below the high watermark); begun now, in the order of calls.

        Of a partition that this broker is about to lead it is begun once the log is ready, in its order among the
        appends that wait for the same (`replicas/upcoming.py`).

        Awaited: the low watermark, once every replica that counts has deleted them. Raises ApiError if nothing was
        deleted; awaited, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT or KAFKA_STORAGE_ERROR if something may have been.
        """

        def begin(left_ms: int) -> Awaitable[Offset]:
            return self._begin(topic, index, offset, left_ms)

        try:
            return begin(timeout_ms)
        except ApiError as error:
            later = self._upcoming.later(error, (topic, index), 0, timeout_ms, begin)
            if later is None:
                raise
            return later

    def _begin(self, topic: Uuid | str, index: int, offset: Offset, timeout_ms: int) -> asyncio.Future[Offset]:
        """Raises ApiError."""
        replica = self._registry.find(topic, index)
        replica.leading()
        if replica.is_frozen:
            raise Busy(f"{replica.name} is being moved to another log directory")
        queue, partition_log = replica.queue, replica.partition_log
        assert queue is not None and partition_log is not None
        target = _target(replica, offset)
        answered: asyncio.Future[Offset] = asyncio.get_running_loop().create_future()

        is_overdue = False
        waiter: Waiter[PartitionKey]

        def woken(reason: Reason) -> None:
            nonlocal waiter, is_overdue
            if reason is Reason.TIME and not is_overdue and replica.core.log_start < target:
                is_overdue = True
                waiter = self._delayed.starts.watch([(replica.key, target)], OWN_DISK_MS, woken)
            elif not answered.done():
                _answer(answered, replica, reason)

        async def delete(moving: Awaitable[Offset]) -> None:
            try:
                start = await moving
            except Exception as error:
                self._delayed.starts.cancel(waiter)
                if not answered.done():
                    storage_error = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
                    answered.set_exception(error if isinstance(error, Busy) else storage_error)
                return
            self._step(replica, LogStartMoved(start))
            if is_overdue:
                self._delayed.starts.cancel(waiter)
                woken(Reason.TIME)  # unless no follower had to be waited for
            self._delayed.ends.state_changed(replica.key)  # wakes waiting followers, which then get the new start

        if target <= replica.core.low_watermark:
            answered.set_result(replica.core.low_watermark)
            return answered
        waiter = self._delayed.starts.watch([(replica.key, target)], timeout_ms, woken)
        moving = queue.run(lambda: partition_log.raise_start(target), Lane.BACKGROUND)
        queue.start(delete(moving), f"delete records of {replica.name}")
        return answered


def _target(replica: Replica, offset: Offset) -> Offset:
    """Raises ApiError."""
    if "delete" not in replica.config.cleanup_policy:
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"{replica.name}: cleanup.policy has no `delete`")
    high_watermark = replica.core.high_watermark
    if offset == ALL_COMMITTED:
        return high_watermark
    if not 0 <= offset <= high_watermark:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{replica.name}: {offset} is not between 0 and {high_watermark}")
    return offset


def _answer(answered: asyncio.Future[Offset], replica: Replica, reason: Reason) -> None:
    match reason:
        case Reason.OFFSET:
            answered.set_result(replica.core.low_watermark)
        case Reason.STATE:
            text = f"broker {replica.core.node_id} no longer leads {replica.name}"
            answered.set_exception(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text))
        case Reason.TIME:
            text = f"{replica.name}: not every replica that counts has deleted the records yet"
            answered.set_exception(ApiError(ErrorCode.REQUEST_TIMED_OUT, text))
