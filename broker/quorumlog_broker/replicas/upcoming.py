"""Partitions that the metadata gives this broker to lead while their logs are not ready yet: requests wait for them.

Every broker names a leader as soon as the metadata has it. The leader's log is made, or opened for the new epoch, by a
job of its directory's writer, some milliseconds later. A client that has just created a topic asks in between, and some
give up at the first NOT_LEADER_OR_FOLLOWER. So a request for such a partition waits for the log: for as long as the
request allows, and up to limits of number and bytes. Beyond these it is refused as before, and clients come back. What
waits for one partition goes on in the order in which it came, in the step that makes the log ready, so that nothing
overtakes it. A request that is cancelled, as gRPC does when its stream is gone, is dropped with its bytes: its client
does not know the outcome and sends it again, where it would come beside the first one. One of the lane goes on without
its connection, as in Kafka.

Only a leadership that this life of the broker was given counts (`broker_incarnation.py`), in a directory that is
online.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, Generic, TypeVar

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId, Offset, Uuid
from quorumlog.turn import Signal, Turn
from quorumlog_broker.delayed.operations import DelayedQueue
from quorumlog_broker.delayed.purgatory import Waiter
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.partition.partition import Role
from quorumlog_broker.replicas.registry import Registry
from quorumlog_quorum.metadata.image import Image

MAX_WAITING = 10_000  # appends and deletions
MAX_WAITING_BYTES = 64 << 20  # of the appends' records
MAX_QUERY_WAIT_MS = 5_000  # of what only asks about a log; some of these requests name no time-out
NEVER: Offset = 2**63 - 1  # an offset that no log reaches: only a change of state ends the wait

_TOO_EARLY = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)

Result = TypeVar("Result")


class UpcomingLeaderships:
    """Used on the loop only. newest: the metadata that this broker tells its clients; the registry may be behind it."""

    def __init__(
        self,
        node_id: NodeId,
        registry: Registry,
        queue: DelayedQueue,
        clock: Clock,
        turn: Turn,
        *,
        has_begun: Callable[[], bool],
    ) -> None:
        """queue: told of every change of who leads here. has_begun: this life of the broker is registered."""
        self.newest: Callable[[], Image] = lambda: registry.image
        self._node_id = node_id
        self._registry = registry
        self._queue = queue
        self._clock = clock
        self._turn = turn
        self._has_begun = has_begun
        self._waiting = self._waiting_bytes = 0

    def key_of(self, error: ApiError, topic: Uuid | str, index: int) -> PartitionKey | None:
        """The partition, if `error` came because its log is not ready yet; else None."""
        if error.code not in _TOO_EARLY or not self._has_begun():
            return None
        image = self.newest()
        key = (topic if isinstance(topic, bytes) else image.topic_ids.get(topic, b""), index)
        registration = image.partition(*key)
        if registration is None or registration.leader != self._node_id:
            return None
        replica = self._registry.replicas.get(key)
        if replica is None:
            return key  # the metadata is being applied
        core = replica.core
        is_coming = not core.ready if core.role is Role.LEADER else core.leader_epoch < registration.leader_epoch
        return key if is_coming and replica.is_usable else None

    def later(
        self,
        error: ApiError,
        partition: tuple[Uuid | str, int],
        size_bytes: int,
        timeout_ms: int,
        act: Callable[[int], Awaitable[Result]],
    ) -> Awaitable[Result] | None:
        """Act once the log is ready, in the order of calls. None: there is nothing to wait for, or no room.

        error: of `act` now. act: begins an append or a deletion in its call, with the milliseconds that are left; may
        raise ApiError. What is returned is awaited, or given up by `give_up`.
        """
        key = self.key_of(error, *partition)
        if key is None or timeout_ms <= 0:
            return None
        if self._waiting >= MAX_WAITING or self._waiting_bytes + size_bytes > MAX_WAITING_BYTES:
            return None
        self._waiting += 1
        self._waiting_bytes += size_bytes
        change = _Later(partition, size_bytes, self._clock.now_ms() + timeout_ms, act, self._drop)
        self._watch(change, key, timeout_ms)
        return change

    def _watch(self, change: _Later[Any], key: PartitionKey, timeout_ms: int) -> None:
        change.waiter = self._queue.watch([(key, NEVER)], timeout_ms, lambda _reason: self._go_on(change))

    def _go_on(self, change: _Later[Any]) -> None:
        if change.signal.cancelled():  # what awaits it has not run since, and gives it up then
            return
        left_ms = max(0, change.deadline_ms - self._clock.now_ms())
        try:
            change.inner = change.act(left_ms)
        except ApiError as error:
            key = self.key_of(error, *change.partition)
            if key is not None and left_ms:
                self._watch(change, key, left_ms)  # another epoch came before the log was ready for this one
                return
            change.error = error
        self._release(change)
        change.signal.fire(self._turn)

    def _drop(self, change: _Later[Any]) -> None:
        assert change.waiter is not None
        self._queue.cancel(change.waiter)
        self._release(change)

    def _release(self, change: _Later[Any]) -> None:
        self._waiting -= 1
        self._waiting_bytes -= change.size_bytes

    # --- of readers, who have no order to keep ---

    def watch(self, keys: Sequence[PartitionKey], timeout_ms: int, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` when one is led or is not coming any more, or the time is over. Returns what ends that."""
        waiter = self._queue.watch([(key, NEVER) for key in keys], timeout_ms, lambda _reason: changed())
        return lambda: self._queue.cancel(waiter)

    async def wait(self, error: ApiError, topic: Uuid | str, index: int, deadline_ms: int) -> bool:
        """True after a change, upon which the caller tries again; False: there is nothing to wait for.

        error: of the attempt before.
        """
        key, left_ms = self.key_of(error, topic, index), deadline_ms - self._clock.now_ms()
        if key is None or left_ms <= 0:
            return False
        changed = Signal()
        end = self.watch([key], left_ms, lambda: changed.fire(self._turn))
        try:
            await changed
        finally:
            end()
        return True


class _Later(Generic[Result]):
    """An append or a deletion that waits. It can be awaited once. inner: what `act` returned, once it has begun."""

    __slots__ = ("act", "deadline_ms", "drop", "error", "inner", "partition", "signal", "size_bytes", "waiter")

    def __init__(
        self,
        partition: tuple[Uuid | str, int],
        size_bytes: int,
        deadline_ms: int,
        act: Callable[[int], Awaitable[Result]],
        drop: Callable[[_Later[Any]], None],
    ) -> None:
        self.partition, self.size_bytes, self.deadline_ms, self.act = partition, size_bytes, deadline_ms, act
        self.drop = drop
        self.waiter: Waiter[PartitionKey] | None = None
        self.signal = Signal()
        self.error: ApiError | None = None
        self.inner: Awaitable[Result] | None = None

    def __await__(self) -> Generator[Any, None, Result]:
        if self.inner is None and self.error is None:
            try:
                yield from self.signal
            except BaseException:
                self.give_up()
                raise
        if self.error is not None:
            raise self.error
        assert self.inner is not None
        return (yield from self.inner.__await__())

    def give_up(self) -> None:
        """Nobody waits for it any more: it is dropped, unless it has begun. Idempotent."""
        if self.inner is None and self.error is None:
            self.error = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the log was not ready before its client left")
            self.drop(self)


def give_up(begun: Iterable[object]) -> None:
    """Of the calls of a request that is cancelled, those that still wait for a log."""
    for one in begun:
        if isinstance(one, _Later):
            one.give_up()
