"""Connections of clients that come faster than they may: nothing of them is read until their turn (KIP-612).

Kafka does not accept a connection that has to wait. asyncio accepts what comes, so here it is accepted and held, unread
and without a handshake. It is a stranger meanwhile: there are so many of those, and the oldest one goes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

from quorumlog.security.host import host_text
from quorumlog.security.quota.arrivals import Arrivals
from quorumlog.wire.serving.gate import Gate, host_of

MakeProtocol = Callable[[], asyncio.BaseProtocol]


class Door:
    """Of one listener for clients."""

    def __init__(self, gate: Gate, arrivals: Arrivals, loop: asyncio.AbstractEventLoop) -> None:
        self._gate, self._arrivals, self._loop = gate, arrivals, loop
        self._waiting: deque[Held] = deque()
        self._held: dict[Held, None] = {}  # those that wait, that are about to come in, and that are turned away
        self._timer: asyncio.TimerHandle | None = None

    def accept(self, make: MakeProtocol) -> asyncio.BaseProtocol:
        """The protocol of a new connection. make: that of one which is let in."""
        if self._waiting or self._timer is not None or self._arrivals.limits(self._gate.listener.name):
            return Held(self, make)
        return make()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for held in list(self._held):
            held.refuse("the listener closes")

    # --- called by `Held`

    def came(self, held: Held, transport: asyncio.Transport) -> None:
        address = host_text(host_of(transport))
        self._held[held] = None
        held.came_s = self._loop.time()
        self._gate.came(held, transport)
        if wait_ms := self._arrivals.of_address(address, self._now_ms()):
            held.timer = self._loop.call_later(wait_ms / 1000, self._turn_away, held, transport, address)
            return
        self._waiting.append(held)
        if self._timer is None:
            self._next()

    def gone(self, held: Held) -> None:
        self._held.pop(held, None)
        self._gate.left(held)

    def let_in(self, held: Held) -> None:
        self._gate.counts.held_s += self._loop.time() - held.came_s

    # --- turns

    def _turn_away(self, held: Held, transport: asyncio.Transport, address: str) -> None:
        self._gate.refused(transport, "turned away", f"{address} comes more often than its quota lets it")
        held.refuse("")

    def _next(self) -> None:
        """Let in who may come now."""
        while self._waiting:
            if self._waiting[0].is_gone:
                self._waiting.popleft()
            elif wait_ms := self._arrivals.turn(self._gate.listener.name, self._now_ms()):
                self._timer = self._loop.call_later(wait_ms / 1000, self._on_turn, self._waiting.popleft())
                return
            else:
                self._waiting.popleft().let_in()

    def _on_turn(self, held: Held) -> None:
        self._timer = None
        held.let_in()
        self._next()

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)


class Held(asyncio.Protocol):
    """A connection before the door."""

    def __init__(self, door: Door, make: MakeProtocol) -> None:
        self._door, self._make = door, make
        self._transport: asyncio.Transport | None = None
        self.came_s = 0.0
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.pause_reading()
        self._door.came(self, self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    @property
    def is_gone(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def let_in(self) -> None:
        """Nothing happens if it is gone."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._door.let_in(self)
        self._end()
        protocol = self._make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if not transport.is_closing():
            transport.resume_reading()

    def refuse(self, reason: str) -> None:
        """`strangers.Stranger`."""
        transport = self._transport
        self._end()
        if transport is not None:
            transport.abort()

    def _end(self) -> None:
        self._transport = None
        if self.timer is not None:
            self.timer.cancel()
        self._door.gone(self)
