"""What one served connection has still to send, given to the socket as the socket takes it, a part in each turn.

An answer of 25 MB is not copied and does not hold the loop: a turn writes no more than `SendTurns` allows all
connections together, and the others have theirs before the next part. The buffers stay as they are while the socket
takes them. What it does not take is copied, piece by piece within the same limit, because one unsent byte of a view
keeps its whole frame alive, though the connection is charged for the one byte: a slow reader soon holds no more than
it is charged for.

The transport's own buffer never holds more than one piece. It is there to be told when the socket takes bytes again.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from itertools import chain, islice

from quorumlog.messages.buffer import Buffer
from quorumlog.wire.protocol.codec import Frame
from quorumlog.wire.protocol.limits import PIECE_BYTES
from quorumlog.wire.serving.tls_transport import TlsTransport

_IOV_MAX = os.sysconf("SC_IOV_MAX")

WriteNow = Callable[[list[Buffer]], int]  # how many bytes the socket took at once; 0 if it takes none, or has failed


class SendTurns:
    """What the connections of one loop may write, or copy, in a turn of it. left_bytes: of this turn."""

    def __init__(self, turn_bytes: int) -> None:
        assert turn_bytes > 0
        self._turn_bytes = self.left_bytes = turn_bytes
        self._waiting: deque[Outgoing] = deque()
        self._is_planned = False

    def use(self, count: int) -> None:
        assert 0 <= count <= self.left_bytes
        self.left_bytes -= count
        self._plan()

    def add(self, outgoing: Outgoing) -> None:
        """Call its `go_on` in the next turn, or in a later one: connections are served in turn."""
        self._waiting.append(outgoing)
        self._plan()

    def _plan(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._is_planned = False
        self.left_bytes = self._turn_bytes
        for _ in range(len(self._waiting)):
            if not self.left_bytes:
                break
            self._waiting.popleft().go_on()
        if self._waiting:
            self._plan()


class Outgoing:
    """transport: with a write buffer limit of 0, so that its protocol's `resume_writing`, which calls `resumed`, means
    that it is empty. write_now: None: the connection has no socket to write to, and the transport gets everything.

    on_progress: called when bytes were taken after `send` has returned.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        write_now: WriteNow | None,
        turns: SendTurns,
        on_progress: Callable[[], None],
    ) -> None:
        self._transport, self._write_now, self._turns, self._on_progress = transport, write_now, turns, on_progress
        self._copies: deque[Buffer] = deque()  # to be sent first
        self._views: deque[Buffer] = deque()
        self._waiting_bytes = 0  # of both
        self._is_planned = self._closes = False

    @property
    def unsent_bytes(self) -> int:
        return 0 if self._transport.is_closing() else self._waiting_bytes + self._transport.get_write_buffer_size()

    def send(self, frame: Frame) -> None:
        """A closing transport drops the frame."""
        transport = self._transport
        if transport.is_closing() or not frame:
            return
        if self._write_now is None:
            transport.writelines(frame)
            return
        size_bytes = sum(map(len, frame))
        if not self._waiting_bytes:
            if size_bytes <= PIECE_BYTES and transport.get_write_buffer_size() <= PIECE_BYTES:
                self._send_small(frame, size_bytes)
                return
            self._add(frame, size_bytes)
            self._go_on()
        else:
            self._add(frame, size_bytes)
            self._plan()

    def resumed(self) -> None:
        """The transport has nothing left to send."""
        if self._waiting_bytes:
            self._plan()
        else:
            self._on_progress()

    def go_on(self) -> None:
        """Called by `SendTurns`."""
        self._is_planned = False
        if self._transport.is_closing():
            self.drop()
            return
        self._go_on()
        self._on_progress()

    def close(self) -> None:
        """Close the transport when everything is sent."""
        self._closes = True
        if not self._waiting_bytes:
            self._transport.close()

    def drop(self) -> None:
        """The connection has ended."""
        self._copies.clear()
        self._views.clear()
        self._waiting_bytes = 0

    # --- what one turn does

    def _send_small(self, frame: Frame, size_bytes: int) -> None:
        """Not counted: it costs no more than the request that it answers."""
        sent_bytes = 0
        if len(frame) > 1 and not self._transport.get_write_buffer_size():
            assert self._write_now is not None
            sent_bytes = self._write_now(frame[:_IOV_MAX])
        if sent_bytes < size_bytes:
            self._transport.write(frame[0] if len(frame) == 1 else b"".join(frame)[sent_bytes:])

    def _add(self, frame: Frame, size_bytes: int) -> None:
        self._views.extend(frame)
        self._waiting_bytes += size_bytes

    def _plan(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._turns.add(self)

    def _go_on(self) -> None:
        if self._transport.get_write_buffer_size() or self._write():
            self._wait()
        elif self._waiting_bytes:
            self._plan()  # the turn is over
        elif self._closes:
            self._transport.close()

    def _write(self) -> bool:
        """True: the socket takes no more now, or has failed; the transport finds out which."""
        assert self._write_now is not None
        while self._waiting_bytes:
            offered, offered_bytes = self._first(self._turns.left_bytes)
            if not offered_bytes:
                return False
            sent_bytes = self._write_now(offered)
            self._turns.use(sent_bytes)
            self._sent(sent_bytes)
            if sent_bytes < offered_bytes:
                return True
        return False

    def _wait(self) -> None:
        """The socket is full: let go of the frames, and have the transport tell when it takes more."""
        self._copy()
        if self._copies and not self._transport.get_write_buffer_size():
            piece = self._copies.popleft()
            self._waiting_bytes -= len(piece)
            self._transport.write(piece)
        if self._views or not self._transport.get_write_buffer_size():
            self._plan()

    def _first(self, max_bytes: int) -> tuple[list[Buffer], int]:
        """What is sent next, for one call of the system, and its bytes."""
        found: list[Buffer] = []
        left_bytes = max_bytes
        for buffer in islice(chain(self._copies, self._views), _IOV_MAX):
            if left_bytes < len(buffer):
                if left_bytes:
                    found.append(memoryview(buffer)[:left_bytes])
                return found, max_bytes
            found.append(buffer)
            left_bytes -= len(buffer)
        return found, max_bytes - left_bytes

    def _sent(self, count: int) -> None:
        """Forget the first `count` bytes."""
        self._waiting_bytes -= count
        for buffers in (self._copies, self._views):
            while buffers and count >= len(buffers[0]):
                count -= len(buffers.popleft())
            if buffers:
                if count:
                    buffers[0] = memoryview(buffers[0])[count:]
                return

    def _copy(self) -> None:
        """Replace views by copies, as many as this turn may."""
        while self._views and self._turns.left_bytes:
            piece = bytearray()
            most_bytes = min(PIECE_BYTES, self._turns.left_bytes)
            while self._views and len(piece) < most_bytes:
                view = memoryview(self._views[0])
                part = view[: most_bytes - len(piece)]
                piece += part
                if len(part) == len(view):
                    self._views.popleft()
                else:
                    self._views[0] = view[len(part) :]
            self._turns.use(len(piece))
            if piece:
                self._copies.append(piece)


def writer_of(transport: asyncio.Transport) -> WriteNow | None:
    """The connection's way to its socket; None: it has none of its own. Over TLS it encrypts."""
    if isinstance(transport, TlsTransport):
        return transport.write_now
    socket = transport.get_extra_info("socket")
    if socket is None:
        return None
    descriptor = socket.fileno()

    def write_now(buffers: list[Buffer]) -> int:
        try:
            return os.writev(descriptor, buffers)
        except OSError:
            return 0  # the transport meets the error too, and tells the protocol

    return write_now
