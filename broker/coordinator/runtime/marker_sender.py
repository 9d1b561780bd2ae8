"""Sends the markers of decided transactions to the leaders of partitions, and tells their coordinators what came back.

Of all coordinators of a node. What there is to send, and when again, is decided by `MarkerQueues`, a slice in each
turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from broker.coordinator.runtime.peers import Peers
from broker.coordinator.transactions.marker_lanes import Owner
from broker.coordinator.transactions.markers import MarkerQueues, MarkerRequest, MarkerResult, Source
from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError
from quorumlog.turn import Turn

Tell = Callable[[Iterable[MarkerResult]], None]


class MarkerSender:
    """tell: hands results to the coordinators that own the markers."""

    def __init__(
        self, queues: MarkerQueues, peers: Peers, tell: Tell, *, clock: Clock, turn: Turn, nursery: Nursery
    ) -> None:
        self._queues, self._peers, self._tell = queues, peers, tell
        self._clock, self._turn, self._nursery = clock, turn, nursery
        self._is_asked = False
        self._alarm = Alarm(clock, queues.next_ms, lambda _now_ms, _late_ms: self._send())

    def __len__(self) -> int:
        """See `MarkerQueues.__len__`."""
        return len(self._queues)

    @property
    def waited(self) -> int:
        """How often a transaction found too many markers under way to a leader."""
        return self._queues.waited

    def offer(self, owner: Owner, source: Source) -> None:
        """It has decided transactions, which are taken in the order of their decisions."""
        if self._queues.offer(owner, source):
            self._send_soon()

    def remove(self, owner: Owner) -> None:
        """It leads no more."""
        self._queues.remove(owner)

    def _send_soon(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._turn.later(self._send)

    def _send(self) -> None:
        """One slice. The next one comes by the alarm, so in another turn: `later` may run in this one."""
        self._is_asked = True  # what is offered meanwhile
        requests, results = self._queues.due(self._clock.now_ms())
        for request in requests:
            self._nursery.start(self._ask(request), f"markers to broker {request.broker}")
        if results:
            self._tell(results)
        self._is_asked = False
        self._alarm.arm()

    async def _ask(self, request: MarkerRequest) -> None:
        try:
            response = await self._peers.call(request.broker, request.message)
        except (RpcError, ApiError):
            self._queues.failed(request.number, self._clock.now_ms())
        else:
            slices = self._queues.answered(request.number, response, self._clock.now_ms())
            self._tell(next(slices, ()))
            self._send_soon()  # the leader waits for its next request
            for results in slices:
                await asyncio.sleep(0)
                self._tell(results)
        self._send_soon()
