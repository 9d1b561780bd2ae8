"""Finds out that a leader hangs, long before its calls time out: another node says who leads now.

A hung node keeps its connections open and answers nothing, so only time tells. If a call has not been answered when it
is overdue, the metadata of its topics are asked from other nodes. The owner of the call then takes away what another
node leads. Calls whose partitions have not moved go on waiting for their answer: the node may only be slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import RpcError

PATIENCE_MS = 1_000  # how long after it could have been answered a call is overdue
LOOK_EVERY_MS = 1_000


class Flight(Protocol):
    """A call that waits for its answer.

    overdue_ms: the client's time after which the node is asked about. leave_moved: called with newer metadata in the
    cache; ends the call for each partition that another node leads.
    """

    node_id: NodeId
    overdue_ms: int

    @property
    def topics(self) -> Sequence[str]: ...

    def leave_moved(self) -> None: ...


class HungLeaderWatch:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._flights: dict[Flight, None] = {}  # oldest first
        self._any = asyncio.Event()

    def began(self, flight: Flight) -> None:
        self._flights[flight] = None
        self._any.set()

    def ended(self, flight: Flight) -> None:
        del self._flights[flight]

    async def run(self) -> None:
        while True:
            await self._any.wait()
            await asyncio.sleep(LOOK_EVERY_MS / 1000)
            await self._look()
            if not self._flights:
                self._any.clear()

    async def _look(self) -> None:
        now_ms = self._link.clock.now_ms()
        silent = {flight.node_id: None for flight in self._flights if flight.overdue_ms <= now_ms}
        topics = {topic: None for flight in self._flights if flight.node_id in silent for topic in flight.topics}
        if not topics:
            return
        try:
            await self._link.refresh(list(topics), create=False, avoid=list(silent))
        except (QuorumlogError, RpcError):
            return  # the next look asks again
        for flight in [flight for flight in self._flights if flight.node_id in silent]:
            flight.leave_moved()
