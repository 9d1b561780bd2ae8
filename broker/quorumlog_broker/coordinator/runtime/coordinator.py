"""What every coordinator of one internal partition does, while this broker leads it: load, serve, and load again.

LOADING: the log is replayed into a fresh core; then its end has to be committed, because a failover could still take
what lies above the high watermark. ACTIVE: calls go to the core, their records to the log, and answers leave once the
high watermark has passed their records. The coordinator lives as long as the leadership of one epoch, so a watermark
of another epoch never reaches it. BROKEN: an append has failed and the core may hold what the log does not; when
nothing is in flight any more, the log is loaded again. FAILED: the log cannot be read as what it should hold. CLOSED:
the leadership is over.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.histogram import Histogram
from quorumlog.ids import Epoch, Offset
from quorumlog.nursery import Nursery
from quorumlog.records import CorruptRecords
from quorumlog.slices import Sliced
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.counts import CoordinatorCounts
from quorumlog_broker.coordinator.runtime.loading import RECORDS_A_TURN, Portion, portions_of
from quorumlog_broker.coordinator.runtime.long_calls import LongCalls
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from quorumlog_broker.coordinator.runtime.pending_appends import PendingAppends
from quorumlog_broker.coordinator.timers import Timers
from quorumlog_broker.coordinator.turn import Answer, Call, Sees, Write, sees_all
from quorumlog_broker.produce.own_appends import OwnAppends
from quorumlog_broker.replicas.replica import Replica

_log = logging.getLogger("quorumlog.broker")

RELOAD_DELAY_MS = 100
ANSWERS_A_TURN = 512
RECORD_ROOM_BYTES = 4_096  # of `max.message.bytes`, for the batch around a record


class State(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    BROKEN = "broken"
    FAILED = "failed"
    CLOSED = "closed"


class Caller(NamedTuple):
    """Who sent a request. host: without a slash; empty if it is not known."""

    client_id: str
    host: str
    sees: Sees = sees_all


class Core(Protocol):
    """What the cores of all kinds have in common."""

    def take(self) -> tuple[list[Write], list[Answer]]: ...

    def count_in(self, counts: CoordinatorCounts) -> None: ...

    def committed(self, high_watermark: Offset) -> None: ...

    def next_timer_ms(self) -> int | None: ...

    def timers_due(self) -> None: ...


AnyCore = TypeVar("AnyCore", bound=Core)
ShardCall = Callable[[Any, Call, Any], Sliced[None] | None]
"""A method of the core that takes a call, as `GroupShard.join`. It returns what is left to do of a long one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What the coordinators of a node share. on_settled: called when a load has ended, well or not. loads: how long
    those took that ended well. tell: an event, by its kind, subject and text. keeps_all: nothing expires now."""

    appends: OwnAppends
    clock: Clock
    turn: Turn
    nursery: Nursery
    on_settled: Callable[[], None]
    counts: CoordinatorCounts = field(default_factory=CoordinatorCounts)
    loads: Histogram = field(default_factory=lambda: Histogram("load"))
    tell: Callable[[str, str, str], None] = lambda _kind, _subject, _text: None
    keeps_all: Callable[[], bool] = lambda: False


class Coordinator(ABC, Generic[AnyCore]):
    """Of one leadership. answer_timeout_ms: how long an answer may wait for its records. max_waiting_calls: above it
    calls are refused.

    WRITING: calls that are refused where no record could be written now. WAITS: calls that wait for other calls, and
    not for records only. BESIDE: long calls that take a copy of what they tell, so that others of the group go on.
    RECORDS_A_TURN: that are replayed between two turns of the loop, in 3 to 5 ms.
    sweep_interval_ms: between two looks for what has expired.
    """

    WRITING: ClassVar[frozenset[ShardCall]]
    WAITS: ClassVar[frozenset[ShardCall]] = frozenset()
    BESIDE: ClassVar[frozenset[ShardCall]] = frozenset()
    RECORDS_A_TURN: ClassVar[int] = RECORDS_A_TURN

    def __init__(
        self,
        replica: Replica,
        leader_epoch: Epoch,
        node: Node,
        *,
        answer_timeout_ms: int,
        sweep_interval_ms: int,
        max_waiting_calls: int,
    ) -> None:
        self.replica, self.leader_epoch = replica, leader_epoch
        self.state = State.LOADING
        self._node, self._clock = node, node.clock
        self._answer_timeout_ms, self._sweep_interval_ms = answer_timeout_ms, sweep_interval_ms
        self._max_waiting_calls = max_waiting_calls
        self._calls: dict[int, PendingAnswer] = {}  # by number; those that are not answered yet
        self._answers: deque[Answer] = deque()  # decided, and not given yet
        self._last_call = 0
        self._deadlines: Timers[int] = Timers()  # of calls, by number
        self._sweep_at_ms = 0
        self._task: asyncio.Task[None] | None = None
        self._alarm = Alarm(node.clock, self._next_ms, self._due)
        self._begin()

    # --- what a kind of coordinator adds ---

    @abstractmethod
    def _new_core(self) -> AnyCore: ...

    @abstractmethod
    def _replay(self, core: AnyCore, portion: Portion) -> None:
        """Raises CorruptRecords for what its log may not hold."""

    @abstractmethod
    def _loaded(self, core: AnyCore, end: Offset) -> Sliced[None]:
        """End the load, in steps of one turn each. Raises CorruptRecords as `_replay`."""

    @abstractmethod
    def _tell_time(self, core: AnyCore, now_ms: int, wall_ms: int, largest_record_bytes: int) -> None: ...

    @abstractmethod
    def _sweep(self) -> None:
        """Look for what has expired."""

    def _taken(self) -> None:
        """The core's records and answers have been taken."""

    def _activated(self) -> None:
        """A load has ended well."""

    def _dropped(self) -> None:
        """The core is given up."""

    # --- life ---

    def _begin(self) -> None:
        """Load the log into a fresh core. Nothing is in flight."""
        self.state = State.LOADING
        assert self.replica.log is not None
        end = self._loaded_to = self.replica.log.end_offset
        self._began_ms = self._clock.now_ms()
        self._shard = self._new_core()
        self._shard.count_in(self._node.counts)
        self._pending_appends = PendingAppends(
            self.replica,
            self.leader_epoch,
            end,
            appends=self._node.appends,
            clock=self._clock,
            turn=self._node.turn,
            broken=self._break,
            settled=self._reload_when_settled,
        )
        self._long = LongCalls(self._around)
        self._committed: asyncio.Future[None] | None = None  # the end of what is loaded
        self._task = self._node.nursery.start(self._load(self._shard, end), f"loading of {self.replica.name}")

    async def _load(self, shard: AnyCore, end: Offset) -> None:
        try:
            async for portion in portions_of(self.replica, end, self.RECORDS_A_TURN):
                self._replay(shard, portion)
            await self._until_committed(end)
            self._at_now()  # sessions begin now, not before the wait
            for _ in self._loaded(shard, end):
                await asyncio.sleep(0)
                self._at_now()
        except (ApiError, CorruptRecords) as error:
            self.state = State.FAILED
            text = "%s cannot be loaded and is not served: %s; move its leadership, or mend its log"
            _log.error(text, self.replica.name, error)
            self._node.tell("coordinator.failed", f"partition/{self.replica.name}", f"cannot be loaded: {error}")
            self._node.on_settled()
            return
        self._activate()

    async def _until_committed(self, end: Offset) -> None:
        if self.replica.core.high_watermark < end:
            self._committed = asyncio.get_running_loop().create_future()
            await self._committed

    def close(self) -> None:
        """The leadership is over: every call is answered with NOT_COORDINATOR."""
        self.state = State.CLOSED
        if self._task is not None:
            self._task.cancel()
        self._drop(f"broker {self.replica.core.node_id} does not lead {self.replica.name} any more")

    def _drop(self, reason: str) -> None:
        self._alarm.cancel()
        self._pending_appends.close()
        self._long.close()
        self._dropped()
        self._answers.clear()
        calls, self._calls = self._calls, {}
        for pending in calls.values():
            pending.fail(ApiError(ErrorCode.NOT_COORDINATOR, reason))

    def _break(self, reason: str) -> None:
        if self.state is not State.ACTIVE:
            return
        self.state = State.BROKEN
        _log.warning("an append to %s failed, so it is loaded again: %s", self.replica.name, reason)
        self._drop(f"{self.replica.name}: {reason}")
        if not self._pending_appends.in_flight:
            self._reload_when_settled()

    def _reload_when_settled(self) -> None:
        if self.state is State.BROKEN:
            asyncio.get_running_loop().call_later(RELOAD_DELAY_MS / 1000, self._reload)

    def _reload(self) -> None:
        if self.state is State.BROKEN and self.replica.log is not None and self.replica.is_usable:
            self._begin()

    # --- the log ---

    def high_watermark_moved(self, high_watermark: Offset) -> None:
        """exclusive; in the leader epoch of this coordinator."""
        if self._committed is not None and high_watermark >= self._loaded_to and not self._committed.done():
            self._committed.set_result(None)
        if self.state is State.ACTIVE:
            self._at_now()
            self._shard.committed(high_watermark)
            self._take()

    def _activate(self) -> None:
        self.state = State.ACTIVE
        self._node.loads.observe((self._clock.now_ms() - self._began_ms) / 1000)
        self._at_now()
        self._shard.committed(self.replica.core.high_watermark)
        self._sweep_at_ms = self._clock.now_ms() + self._sweep_interval_ms
        self._take()
        self._activated()
        text = f"loaded to offset {self._loaded_to} in leader epoch {self.leader_epoch}; it serves"
        self._node.tell("coordinator.loaded", f"partition/{self.replica.name}", text)
        self._node.on_settled()

    # --- calls ---

    def call(self, method: ShardCall, caller: Caller, request: Any) -> PendingAnswer:
        """Give a call to the core. Raises ApiError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR; and, where too many
        calls wait or records could not be written now, COORDINATOR_NOT_AVAILABLE. So may the answer, where they are
        not committed in time.
        """
        self.check_active()
        if len(self._calls) >= self._max_waiting_calls:
            text = f"{self.replica.name}: {len(self._calls)} calls wait already, which is the limit; try again soon"
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
        if method in self.WRITING:
            self._check_appendable()
        self._last_call += 1
        number = self._last_call
        pending = self._calls[number] = PendingAnswer(self._node.turn)
        if method not in self.WAITS:
            self._deadlines.arm(number, self._clock.now_ms() + self._answer_timeout_ms)
        self._at_now()
        call = Call(number, caller.client_id, f"/{caller.host}", caller.sees)
        begin = self._long.call_beside if method in self.BESIDE else self._long.call
        begin(_name_of(request), lambda: method(self._shard, call, request))
        self._take()
        return pending

    def check_active(self) -> None:
        if self.state is State.LOADING:
            text = f"{self.replica.name} is being loaded; try again soon"
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)
        if self.state is not State.ACTIVE:
            raise ApiError(ErrorCode.NOT_COORDINATOR, f"{self.replica.name} is not served here: {self.state.value}")

    def _check_appendable(self) -> None:
        try:
            self._pending_appends.check()
        except ApiError as error:
            is_elsewhere = error.code in (
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.FENCED_LEADER_EPOCH,
                ErrorCode.KAFKA_STORAGE_ERROR,
            )
            code = ErrorCode.NOT_COORDINATOR if is_elsewhere else ErrorCode.COORDINATOR_NOT_AVAILABLE
            raise ApiError(code, error.message) from error

    # --- steps of the core ---

    def _at_now(self) -> None:
        largest = self.replica.config.max_message_bytes - RECORD_ROOM_BYTES
        self._tell_time(self._shard, self._clock.now_ms(), self._clock.wall_ms(), largest)

    def _around(self, step: Callable[[], None]) -> None:
        self._at_now()
        step()
        self._take()

    def _take(self) -> None:
        writes, answers = self._shard.take()
        if writes:
            self._pending_appends.add(writes)
        others_wait = bool(self._answers)
        self._answers += answers
        if answers and not others_wait:
            self._answer_some()
            if self._answers:
                self._long.work(self._answer_the_rest())
        self._taken()
        self._alarm.arm()

    def _answer_some(self) -> None:
        for _ in range(min(ANSWERS_A_TURN, len(self._answers))):
            answer = self._answers.popleft()
            self._deadlines.cancel(answer.call)
            pending = self._calls.pop(answer.call, None)
            if pending is not None:  # otherwise it has waited for too long
                pending.answer(answer.response)

    def _answer_the_rest(self) -> Sliced[None]:
        """All members of a large group may be answered at once."""
        while self._answers:
            self._answer_some()
            yield

    # --- time ---

    def _next_ms(self) -> int | None:
        if self.state is not State.ACTIVE:
            return None
        times = (self._shard.next_timer_ms(), self._deadlines.next_ms(), self._sweep_at_ms)
        return min(at_ms for at_ms in times if at_ms is not None)

    def _due(self, now_ms: int, _late_ms: int) -> None:
        for number in self._deadlines.due(now_ms):
            pending = self._calls.pop(number, None)
            if pending is not None:
                waited = f"{self.replica.name}: not committed in {self._answer_timeout_ms} ms"
                pending.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{waited}; it may yet be"))
        self._at_now()
        self._shard.timers_due()
        if now_ms >= self._sweep_at_ms:
            self._sweep_at_ms = now_ms + self._sweep_interval_ms
            if not self._node.keeps_all():
                self._sweep()
        self._take()


def _name_of(request: Any) -> str:
    """The group of a call that has one: its long calls and its others follow each other."""
    return request if isinstance(request, str) else getattr(request, "group_id", "")
