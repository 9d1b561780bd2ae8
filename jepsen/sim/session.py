"""One simulated TCP connection: two ends, bytes in between, and how each end learns that the other is gone.

1. Ordered messages and the end of a session keep their order in each direction; unary messages may overtake.
2. What arrives at an end that is gone is answered with a reset, as a kernel does for a process that died.
3. A lost ordered message breaks the session. On a cut link it is not lost but late (TCP sends it again), unless the
   cut outlasts keepalive, which breaks the session on both sides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from jepsen.sim.message import CLIENT, SERVER, Message

if TYPE_CHECKING:
    from jepsen.sim.network import Network


class End(Protocol):
    """One side's owner. Both methods are called as the network, outside of any node's loop."""

    def on_message(self, message: Message) -> None: ...

    def on_broken(self) -> None:
        """Called once, unless this end was closed by its own side first."""


class Block(Enum):
    """Why a pipe lets nothing out."""

    SILENCE = "silence"  # until the link is healed
    HELD = "held"  # until the interceptor's messages are released


class Pipe:
    """The order of one direction of one session."""

    def __init__(self) -> None:
        self.last_ns = 0  # nothing may arrive earlier
        self.blocked: Block | None = None
        self.waiting: deque[Callable[[], None]] = deque()  # to be sent when it is blocked no more


class Session:
    def __init__(self, network: Network, number: int, client_host: str, server_host: str) -> None:
        self.number = number
        self._network = network
        self._hosts = {CLIENT: client_host, SERVER: server_host}
        self._ends: dict[str, End | None] = {CLIENT: None, SERVER: None}
        self._gone: dict[str, None] = {}  # sides that were there, or were meant to be, and are no more
        self._pipes = {CLIENT: Pipe(), SERVER: Pipe()}  # by the side that sends

    def attach(self, side: str, end: End) -> None:
        self._ends[side] = end

    def host(self, side: str) -> str:
        return self._hosts[side]

    def crosses(self, one: str, other: str) -> bool:
        return sorted(self._hosts.values()) == sorted((one, other))

    @property
    def over(self) -> bool:
        return len(self._gone) == len(self._ends)

    def send(self, side: str, message: Message) -> None:
        """Nothing is sent from an end that is closed."""
        if self._ends[side] is None:
            return
        if message.ordered:
            self._in_order(side, lambda: self._network.send_ordered(message, self._pipes[side], self, side))
        else:
            self._network.send_unary(message, lambda: self._arrive(_other(side), message))

    def arrive_ordered(self, side: str, message: Message) -> None:
        self._arrive(_other(side), message)

    def close(self, side: str) -> None:
        """This side is done, or dead; the other side is told, if the network lets it be."""
        if self._ends[side] is None:
            return
        self._ends[side] = None
        self._gone[side] = None
        self.tell_closed(side)

    def end_unused(self, side: str) -> None:
        """Close a side that nobody has been attached to."""
        assert self._ends[side] is None
        self._gone[side] = None
        self.tell_closed(side)

    def tell_closed(self, side: str) -> None:
        """Send (again) that this side is gone."""
        source, destination = self._hosts[side], self._hosts[_other(side)]
        pipe = self._pipes[side]

        def send() -> None:
            self._network.send_control(source, destination, lambda: self._break(_other(side)), pipe)

        self._in_order(side, send)

    def tear(self) -> None:
        """Both ends find out by themselves, each on its side."""
        for side in (CLIENT, SERVER):
            self._break(side)

    def block(self, side: str, why: Block, again: Callable[[], None]) -> None:
        """Nothing in order goes out from this side until `unblock`; then `again` is first."""
        pipe = self._pipes[side]
        assert pipe.blocked is None
        pipe.blocked = why
        pipe.waiting.appendleft(again)

    def unblock(self, side: str, why: Block) -> None:
        """No effect on what is blocked for another reason."""
        pipe = self._pipes[side]
        if pipe.blocked is not why:
            return
        pipe.blocked = None
        while pipe.waiting and pipe.blocked is None:
            pipe.waiting.popleft()()

    def on_healed(self) -> None:
        """Links are as they should be again: send what waited, and say what could not be said."""
        for side in (CLIENT, SERVER):
            self.unblock(side, Block.SILENCE)
        if len(self._gone) == 1:  # else nobody is left, or both are there
            for side in self._gone:
                self.tell_closed(side)

    def _in_order(self, side: str, send: Callable[[], None]) -> None:
        pipe = self._pipes[side]
        if pipe.blocked is not None:
            pipe.waiting.append(send)
        else:
            send()

    def _arrive(self, side: str, message: Message) -> None:
        end = self._ends[side]
        if end is None:
            self.tell_closed(side)
        else:
            end.on_message(message)

    def _break(self, side: str) -> None:
        end, self._ends[side] = self._ends[side], None
        self._gone[side] = None
        if end is not None:
            end.on_broken()


def _other(side: str) -> str:
    return SERVER if side == CLIENT else CLIENT
