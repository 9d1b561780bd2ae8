"""Sends the markers of decided transactions to the leaders of partitions, and tells their coordinators what came back.

Of all coordinators of a node. What there is to send, and when again, is decided by `MarkerQueues`, a slice in each
turn of the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_broker.coordinator.transactions.marker_lanes import Owner, Work
from quorumlog_broker.coordinator.transactions.markers import MarkerQueues, MarkerRequest, MarkerResult, Source

Tell = Callable[[Iterable[MarkerResult]], None]


class MarkerSender:
    """tell: hands results to the coordinators that own the markers."""

    def __init__(
        self, queues: MarkerQueues, peers: Peers, tell: Tell, *, clock: Clock, turn: Turn, nursery: Nursery
    ) -> None:
        self._queues, self._peers, self._tell = queues, peers, tell
        self._clock, self._turn, self._nursery = clock, turn, nursery
        self._answers: deque[Iterator[list[MarkerResult]]] = deque()  # one for each leader at most, or two
        self._is_asked = False
        self._goes_on = False  # the last slice was not the last: the alarm has been set for the next
        self._alarm = Alarm(clock, self._next_ms, lambda _now_ms, _late_ms: self._send())

    def __len__(self) -> int:
        """See `MarkerQueues.__len__`."""
        return len(self._queues)

    @property
    def waited(self) -> int:
        """How often a transaction found too many markers under way to a leader."""
        return self._queues.waited

    def is_under_way(self, owner: Owner, transactional_id: str) -> bool:
        """See `MarkerQueues.is_under_way`."""
        return self._queues.is_under_way(Work(owner, transactional_id))

    def offer(self, owner: Owner, source: Source) -> None:
        """It has decided transactions, which are taken in the order of their decisions."""
        if self._queues.offer(owner, source):
            self._send_soon()

    def remove(self, owner: Owner) -> None:
        """It leads no more."""
        self._queues.remove(owner)

    def _send_soon(self) -> None:
        """At the end of what the loop does now; but while much is to do, only one slice a turn."""
        if self._goes_on:
            self._alarm.arm()
        elif not self._is_asked:
            self._is_asked = True
            self._turn.later(self._send)

    def _next_ms(self) -> int | None:
        return 0 if self._answers else self._queues.next_ms()

    def _send(self) -> None:
        """One slice: of what came back, and of what there is to send. The next one comes by the alarm, so in another
        turn of the loop; `later` may run in this one."""
        self._is_asked = True  # what is offered meanwhile
        now_ms = self._clock.now_ms()
        if self._answers:
            self._tell_slice()
        requests, results = self._queues.due(now_ms)
        for request in requests:
            self._nursery.start(self._ask(request), f"markers to broker {request.broker}")
        if results:
            self._tell(results)
        next_ms = self._next_ms()
        self._is_asked, self._goes_on = False, next_ms is not None and next_ms <= now_ms
        self._alarm.arm()

    def _tell_slice(self) -> None:
        """Of the oldest answer."""
        results = next(self._answers[0], None)
        if results is None:
            self._answers.popleft()
        else:
            self._tell(results)

    async def _ask(self, request: MarkerRequest) -> None:
        try:
            response = await self._peers.call(request.broker, request.message)
        except (RpcError, ApiError):
            self._queues.failed(request.number, self._clock.now_ms())
        else:
            self._answers.append(self._queues.answered(request.number, response, self._clock.now_ms()))
        self._send_soon()
