"""TLS over a plain transport of asyncio, for accepted connections: the connection's protocol sees a transport like any
other.

asyncio has a TLS transport of its own, but it counts a connection only after its handshake, hands out the plain socket
(bytes written there are not encrypted), drops the alert of a failed handshake, waits 30 s for the peer's close_notify,
leaves out what its plain transport still holds when asked for unsent bytes, and knows no half-closed connection
(https://github.com/python/cpython/blob/3.11/Lib/asyncio/sslproto.py). Here

- the connection exists from when it is accepted (`Handshakes` is told), and the handshake has a time;
- nobody gets the socket; `write_now` encrypts;
- a failed handshake's alert is sent before the connection ends;
- a closed connection sends close_notify and its end, and is gone LINGER_S after its last byte, whatever the peer does;
- unsent bytes are those of the plain transport: nothing encrypted stays here;
- a peer that has ended its side still gets its answers, as on a plain listener (RFC 8446, section 6.1).

A connection keeps the context with which it began: a certificate that is replaced counts for later ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterable
from enum import IntEnum, auto
from typing import Any, Protocol, cast

from quorumlog.messages.buffer import Buffer
from quorumlog.wire.format.framing import looks_like
from quorumlog.wire.protocol.limits import PIECE_BYTES

SCRATCH_BYTES = 128 * 1024  # most that is read at once: a turn of the loop costs as much as to decrypt 32 KiB
_WAKE_BYTES = 64 * 1024  # of a large frame: a peer sends record by record, and each turn of the loop is dear
_RECORD_BYTES = 16 * 1024  # most in a record (RFC 8446, section 5.1): so much of a frame may lie in OpenSSL
_FED_BYTES = 64 * 1024  # at once: OpenSSL keeps a third more than the most it was given, for as long as it lives
LINGER_S = 2.0  # how long a peer may take to end its side after ours has ended
_HANDSHAKE = 0x16  # the first byte of a record that begins a handshake (RFC 8446, section 5.1)
_UNEXPECTED = b"\x15\x03\x03\0\x02\x02\x0a"  # the alert unexpected_message: clients know by it that TLS is spoken here


class Handshakes(Protocol):
    """What is told of a connection before its protocol exists for it."""

    def began(self, transport: TlsTransport) -> None: ...

    def succeeded(self, transport: TlsTransport) -> None: ...

    def failed(self, transport: TlsTransport, reason: str) -> None:
        """It is about to end. reason: for people; empty: the peer has left without a byte."""

    def in_clear(self, transport: TlsTransport, looks: str) -> None:
        """It is about to end: the peer speaks without TLS. looks: what its bytes look like; empty: unknown."""


class Phase(IntEnum):
    NEW = auto()
    HANDSHAKE = auto()
    OPEN = auto()
    ENDING = auto()  # ours has ended: what still comes is not read
    LOST = auto()


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """protocol: gets `connection_made` after the handshake, and nothing before it; nothing at all if that fails.
    scratch: of SCRATCH_BYTES, shared by connections of a loop, and with no protocol of theirs."""

    def __init__(
        self,
        protocol: asyncio.BufferedProtocol,
        context: ssl.SSLContext,
        handshakes: Handshakes,
        scratch: memoryview,
        timeout_s: float,
        plain_too: bool = False,
        missing_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        """plain_too: a peer that begins without TLS gets the plain transport. missing_bytes: that the protocol is still
        to get for certain, because it has a part of a frame."""
        super().__init__()
        self._protocol, self._handshakes, self._scratch, self._timeout_s = protocol, handshakes, scratch, timeout_s
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._context, self._plain_too = context, plain_too
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._plain: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._phase = Phase.NEW
        self.began_s = 0.0  # when it was accepted, by the loop's time
        self._missing_bytes, self._wakes_at_bytes = missing_bytes, 1
        self._is_paused = self._is_planned = self._has_heard = self._is_made = False
        self._peer_ended = self._is_at_end = False  # by close_notify; by the end of its bytes

    # --- called by the loop, of the plain transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._plain, self._phase = cast(asyncio.Transport, transport), Phase.HANDSHAKE
        self._plain.set_write_buffer_limits(high=0)
        loop = asyncio.get_running_loop()
        self.began_s, self._timer = loop.time(), loop.call_later(self._timeout_s, self._is_late)
        self._handshakes.began(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._scratch if self._phase is Phase.OPEN else self._scratch[:_FED_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        if self._phase is Phase.HANDSHAKE:
            if not self._has_heard and self._scratch[0] != _HANDSHAKE and self._plain_too:
                self._step_aside(bytes(self._scratch[:nbytes]))
                return
            if not self._has_heard and self._scratch[0] != _HANDSHAKE:
                self._lower.write(_UNEXPECTED)
                self._phase = Phase.ENDING
                self._handshakes.in_clear(self, looks_like(bytes(self._scratch[: min(nbytes, 4)])) or "")
                self._end()
                return
            self._has_heard = True
            self._incoming.write(self._scratch[:nbytes])
            self._shake_hands()
        else:
            for start in range(0, nbytes, _FED_BYTES):
                if self._phase is not Phase.OPEN:
                    break
                self._incoming.write(self._scratch[start : min(start + _FED_BYTES, nbytes)])
                self._read()
            if self._phase is Phase.OPEN:
                self._wake_at(min(self._missing_bytes() - _RECORD_BYTES, _WAKE_BYTES))

    def eof_received(self) -> bool:
        """True: the plain transport stays, for what is still to be sent."""
        self._is_at_end = True
        if self._phase is Phase.HANDSHAKE:
            self._refuse("it left in the middle of a TLS handshake" if self._has_heard else "")
            return False
        return self._phase is Phase.OPEN and self._on_peer_end()

    def connection_lost(self, exc: Exception | None) -> None:
        before, self._phase = self._phase, Phase.LOST
        if self._timer is not None:
            self._timer.cancel()
        if before is Phase.HANDSHAKE:
            is_failure = exc is not None and self._has_heard  # a probe may end with a reset
            self._handshakes.failed(self, f"it broke the connection in a TLS handshake: {exc}" if is_failure else "")
        elif self._is_made:
            self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        if self._is_made:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._is_made:
            self._protocol.resume_writing()
        if self._phase is Phase.ENDING and not self._lower.is_closing():
            self._shut_down()

    # --- called by the protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As of asyncio's TLS transport, but "socket" is not there: what is written to it would not be encrypted."""
        if name == "socket":
            return default
        own = {"sslcontext": self._context, "ssl_object": self._tls}
        return own[name] if name in own else self._lower.get_extra_info(name, default)

    @property
    def certificate(self) -> bytes | None:
        """The peer's, as DER. None: it has shown none."""
        return self._tls.getpeercert(binary_form=True)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.BufferedProtocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._phase is not Phase.OPEN or self._lower.is_closing()

    def is_reading(self) -> bool:
        return self._phase is Phase.OPEN and not self._is_paused

    def pause_reading(self) -> None:
        if self._phase is Phase.OPEN and not self._is_paused:
            self._is_paused = True
            self._lower.pause_reading()

    def resume_reading(self) -> None:
        if self._phase is Phase.OPEN and self._is_paused:
            self._is_paused = False
            if not self._peer_ended:
                self._lower.resume_reading()
            self._read_soon()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._lower.set_write_buffer_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._lower.get_write_buffer_limits()

    def get_write_buffer_size(self) -> int:
        return self._lower.get_write_buffer_size()

    def write(self, data: Buffer) -> None:
        if self._phase is Phase.OPEN and len(data) and self._encrypt(data):
            self._flush()

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        self.write(b"".join(list_of_data))

    def write_now(self, buffers: list[Buffer]) -> int:
        """`outgoing.WriteNow`: as much as the socket takes, in pieces. A piece of many buffers becomes as few records
        as one of one buffer."""
        sent_bytes = 0
        for piece in _pieces(buffers):
            if self.is_closing() or self._lower.get_write_buffer_size() or not self._encrypt(piece):
                break
            self._flush()
            sent_bytes += len(piece)
        return sent_bytes

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        """Ends our side when everything is sent; the connection is gone soon after that."""
        if self._phase is not Phase.OPEN:
            return
        self._phase = Phase.ENDING
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # it wants the peer's close_notify, which nobody waits for
        self._end()

    def abort(self) -> None:
        if self._phase is not Phase.LOST:
            self._lower.abort()

    # --- the handshake

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._refuse(f"the TLS handshake failed: {reason_of(error)}")
            return
        self._flush()
        assert self._timer is not None
        self._timer.cancel()
        self._phase, self._is_made = Phase.OPEN, True
        self._handshakes.succeeded(self)
        self._protocol.connection_made(self)
        self._read()

    def _step_aside(self, data: bytes) -> None:
        """The protocol goes on with the plain transport, and with what came by it."""
        assert self._timer is not None
        self._timer.cancel()
        self._phase = Phase.LOST
        self._handshakes.succeeded(self)
        self._lower.set_protocol(self._protocol)
        self._protocol.connection_made(self._lower)
        while data:
            buffer = memoryview(self._protocol.get_buffer(len(data)))
            taken = min(len(buffer), len(data))
            buffer[:taken] = data[:taken]
            data = data[taken:]
            self._protocol.buffer_updated(taken)

    def _is_late(self) -> None:
        self._refuse(f"it has not ended the TLS handshake within {self._timeout_s:g} s")

    def _refuse(self, reason: str) -> None:
        """Send the alert, if there is one, and end."""
        self._phase = Phase.ENDING
        self._handshakes.failed(self, reason)
        self._end()

    def refuse(self, reason: str) -> None:
        """Others need the room of this handshake."""
        if self._phase is Phase.HANDSHAKE:
            self._refuse(reason)
            self._lower.abort()

    # --- bytes

    @property
    def _lower(self) -> asyncio.Transport:
        assert self._plain is not None, "the transport is used before it was made"
        return self._plain

    def _read(self) -> None:
        """Give the protocol what has come, in pieces as large as its buffer takes."""
        while self._phase is Phase.OPEN and not self._is_paused:
            with memoryview(self._protocol.get_buffer(-1)) as buffer:  # nobody can resize what is below a view
                filled, ended = self._fill(buffer)
                is_full = filled == len(buffer)
            if filled:
                self._protocol.buffer_updated(filled)
            if ended:
                if self._phase is Phase.OPEN and not self._on_peer_end():
                    self.close()
                break
            if not is_full:
                break
        if self._phase is not Phase.LOST:
            self._flush()  # the answer to a change of keys

    def _wake_at(self, count: int) -> None:
        """Have the loop called when so many bytes have come, or the peer has ended, and not for each record."""
        wakes_at_bytes = max(count, 1)
        if wakes_at_bytes != self._wakes_at_bytes:
            self._wakes_at_bytes = wakes_at_bytes
            sock = self._lower.get_extra_info("socket")
            with contextlib.suppress(OSError):  # it has been reset meanwhile, which the loop will tell
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wakes_at_bytes)

    def _fill(self, buffer: memoryview) -> tuple[int, bool]:
        """How many bytes of the buffer are filled now, and whether the peer has ended its side. A read that leaves
        room has taken its whole record, so there is more only where bytes are left: the exception is dear."""
        filled = 0
        try:
            while True:
                count = self._tls.read(len(buffer) - filled, buffer[filled:])
                if not count:
                    return filled, True
                filled += cast(int, count)
                if filled == len(buffer) or not self._incoming.pending:
                    return filled, False
        except ssl.SSLWantReadError:
            return filled, False
        except ssl.SSLError:  # a record that was changed on its way, or an alert of the peer's
            self._flush()
            self._lower.close()
            return 0, False

    def _read_soon(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._read_planned)

    def _read_planned(self) -> None:
        self._is_planned = False
        self._read()

    def _on_peer_end(self) -> bool:
        """True: the protocol has still to answer."""
        if self._peer_ended:
            return True
        self._peer_ended = True
        self._lower.pause_reading()
        return bool(self._protocol.eof_received())

    def _encrypt(self, data: Buffer) -> bool:
        """False: the connection is broken, and ends."""
        try:
            self._tls.write(data)
        except ssl.SSLError:
            self._lower.abort()
            return False
        return True

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._lower.write(self._outgoing.read())

    # --- the end

    def _end(self) -> None:
        """Send what is left and our end. What the peer has sent meanwhile is read and dropped: a socket that is closed
        with unread bytes tells the peer of a reset, which may overtake the last answer."""
        self._flush()
        if self._timer is not None:
            self._timer.cancel()
        if self._lower.is_closing():
            return
        if self._is_at_end:
            self._lower.close()
            return
        self._lower.resume_reading()
        self._wake_at(1)
        if not self._lower.get_write_buffer_size():
            self._shut_down()
        self._linger(self._lower.get_write_buffer_size())

    def _shut_down(self) -> None:
        """Nothing is left to send. The plain transport would do it when it has sent the last byte, too, but where the
        peer has gone meanwhile it would raise what nobody catches."""
        try:
            self._lower.write_eof()
        except OSError:
            self._lower.abort()

    def _linger(self, unsent_bytes: int) -> None:
        self._timer = asyncio.get_running_loop().call_later(LINGER_S, self._has_lingered, unsent_bytes)

    def _has_lingered(self, before_bytes: int) -> None:
        """A peer that goes on taking its last answers gets them all."""
        unsent_bytes = self._lower.get_write_buffer_size()
        if 0 < unsent_bytes < before_bytes:
            self._linger(unsent_bytes)
        else:
            self._lower.abort()


def reason_of(error: ssl.SSLError) -> str:
    """In OpenSSL's words, without the place in its source."""
    verify = getattr(error, "verify_message", "")
    reason = (error.reason or str(error)).lower().replace("_", " ")
    return f"{reason}: {verify}" if verify else reason


def _pieces(buffers: list[Buffer]) -> Iterable[Buffer]:
    """Each of PIECE_BYTES but the last, so of whole records; no more is copied than what begins or ends a buffer."""
    joined = bytearray()
    for buffer in buffers:
        view = memoryview(buffer)
        if joined:
            room = PIECE_BYTES - len(joined)
            joined += view[:room]
            view = view[room:]
            if len(joined) < PIECE_BYTES:
                continue
            yield joined
            joined = bytearray()
        while len(view) >= PIECE_BYTES:
            yield view[:PIECE_BYTES]
            view = view[PIECE_BYTES:]
        joined += view
    if joined:
        yield joined
