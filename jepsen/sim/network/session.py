"""One simulated TCP connection: two ends, bytes between them, and how each end learns that the other is gone.

1. Ordered messages and the end of a session keep their order in each direction; unary messages may overtake.
2. A message that arrives at a closed end is answered with a reset, as a kernel does for a dead process.
3. A lost ordered message breaks the session. On a cut link it is only delayed (TCP sends it again), unless the cut
   outlasts keepalive, which breaks the session on both sides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from jepsen.sim.network.message import CLIENT, SERVER, Message

if TYPE_CHECKING:
    from jepsen.sim.network.network import Network


class End(Protocol):
    """The owner of one side. The network calls both methods, outside of any node's loop."""

    def on_message(self, message: Message) -> None: ...

    def on_broken(self) -> None:
        """Called once, unless its own side closed this end first."""


class Block(Enum):
    """Why a pipe is blocked."""

    SILENCE = "silence"  # until the link is healed
    HELD = "held"  # until the interceptor's messages are released


class Pipe:
    """The order of messages in one direction of one session."""

    def __init__(self) -> None:
        self.last_ns = 0  # no message may arrive earlier
        self.blocked: Block | None = None
        self.waiting: deque[Callable[[], None]] = deque()  # sent when the pipe is unblocked


class Session:
    def __init__(self, network: Network, number: int, client_host: str, server_host: str) -> None:
        self.number = number
        self._network = network
        self._hosts = {CLIENT: client_host, SERVER: server_host}
        self._ends: dict[str, End | None] = {CLIENT: None, SERVER: None}
        self._on_taken: dict[str, Callable[[int], None]] = {}
        self._gone: dict[str, None] = {}  # sides that were closed, or will never be attached
        self._pipes = {CLIENT: Pipe(), SERVER: Pipe()}  # by sending side

    def attach(self, side: str, end: End) -> None:
        self._ends[side] = end

    def on_taken(self, side: str, callback: Callable[[int], None]) -> None:
        """Tell this side how many bytes the other one has taken from its buffer."""
        self._on_taken[side] = callback

    def taken(self, side: str, count: int) -> None:
        """This side has taken so many bytes that the other one sent."""
        callback = self._on_taken.get(_other(side))
        if callback is not None:
            callback(count)

    def host(self, side: str) -> str:
        return self._hosts[side]

    def crosses(self, one: str, other: str) -> bool:
        return sorted(self._hosts.values()) == sorted((one, other))

    @property
    def over(self) -> bool:
        return len(self._gone) == len(self._ends)

    def send(self, side: str, message: Message) -> None:
        """A closed end sends nothing."""
        if self._ends[side] is None:
            return
        if message.ordered:
            self._in_order(side, lambda: self._network.send_ordered(message, self._pipes[side], self, side))
        else:
            self._network.send_unary(message, lambda: self._arrive(_other(side), message))

    def arrive_ordered(self, side: str, message: Message) -> None:
        self._arrive(_other(side), message)

    def close(self, side: str) -> None:
        """This side is done or dead. The other side is told, if the network allows it."""
        if self._ends[side] is None:
            return
        self._ends[side] = None
        self._gone[side] = None
        self.tell_closed(side)

    def end_unused(self, side: str) -> None:
        """Close a side to which no end was attached."""
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
        """Both ends find out independently."""
        for side in (CLIENT, SERVER):
            self._break(side)

    def block(self, side: str, why: Block, again: Callable[[], None]) -> None:
        """Hold ordered messages from this side until `unblock`; then `again` is called first."""
        pipe = self._pipes[side]
        assert pipe.blocked is None
        pipe.blocked = why
        pipe.waiting.appendleft(again)

    def unblock(self, side: str, why: Block) -> None:
        """No effect if the pipe is blocked for another reason."""
        pipe = self._pipes[side]
        if pipe.blocked is not why:
            return
        pipe.blocked = None
        while pipe.waiting and pipe.blocked is None:
            pipe.waiting.popleft()()

    def on_healed(self) -> None:
        """The link works again: send the waiting messages, and the notice of a closed end."""
        for side in (CLIENT, SERVER):
            self.unblock(side, Block.SILENCE)
        if len(self._gone) == 1:  # otherwise both ends are gone, or both are attached
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
