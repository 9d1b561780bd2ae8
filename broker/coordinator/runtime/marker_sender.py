"""Sends the markers of decided transactions to the leaders of partitions, and tells their coordinators what came back.

Of all coordinators of a node. What there is to send, and when again, is decided by `MarkerQueues`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker.coordinator.runtime.peers import Peers
from broker.coordinator.transactions.completion import DecidedTransaction
from broker.coordinator.transactions.markers import MarkerQueues, MarkerRequest, MarkerResult, Owner
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
        """Markers that are not confirmed."""
        return len(self._queues)

    def add(self, owner: Owner, decided: DecidedTransaction) -> None:
        """Once for each decision; see `MarkerQueues.add`."""
        self._queues.add(owner, decided)
        self._send_soon()

    def remove(self, owner: Owner) -> None:
        """It leads no more."""
        self._queues.remove(owner)

    def _send_soon(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._turn.later(self._send)

    def _send(self) -> None:
        self._is_asked = False
        requests, results = self._queues.due(self._clock.now_ms())
        for request in requests:
            self._nursery.start(self._ask(request), f"markers to broker {request.broker}")
        if results:
            self._tell(results)
        self._alarm.arm()

    async def _ask(self, request: MarkerRequest) -> None:
        results: list[MarkerResult] = []
        try:
            response = await self._peers.call(request.broker, request.message)
        except (RpcError, ApiError):
            self._queues.failed(request.number, self._clock.now_ms())
        else:
            results = self._queues.answered(request.number, response, self._clock.now_ms())
        self._tell(results)
        self._send_soon()
