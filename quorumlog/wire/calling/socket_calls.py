"""One socket of the calling side: it is opened, introduces itself (versions, proof), then sends requests and receives
their responses in order.

Shell. Calls wait until the introduction is over; after that a call is written before it first suspends. When the socket
breaks, calls that were sent have an unknown outcome, and all others were not delivered. A peer that refuses this node's
proof answers all calls of the socket by that; none was sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.scram_client import NotProven, ScramClient
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.rpc import clear_secret
from quorumlog.rpc.calling.timed_call import TimedCall
from quorumlog.rpc.calls import expects_answer, failure
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.transport import Address, Identity, NotDelivered, NotServed, OnEnded, OutcomeUnknown
from quorumlog.turn import Turn
from quorumlog.wire.calling.sending import send
from quorumlog.wire.format.cursor import Malformed
from quorumlog.wire.format.frame_writer import LENGTH_BYTES
from quorumlog.wire.format.framing import FrameReader
from quorumlog.wire.format.header import RequestHeader
from quorumlog.wire.protocol import sasl, versions
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.protocol.codec import Frame, WireRequest, decode_response, encode_request
from quorumlog.wire.protocol.limits import WireLimits

_INTRODUCTION_ID = 0  # correlation id; those of calls begin at 1
_MAX_ID = 2**31 - 1
SILENT = "accepts connections, and has said nothing for {} ms (it may hang): is it a broker?"


class PendingCall(TimedCall):
    """A call that waits to be sent, then for its response, which is read by its `wire_request`."""

    __slots__ = ("correlation_id", "request", "wire_request")

    def __init__(self, request: Any, timeout_ms: int, ended: OnEnded | None = None) -> None:
        super().__init__(BY_REQUEST[type(request)].method.name, expects_answer(request), timeout_ms, ended)
        self.request: Any = request
        self.wire_request: WireRequest | None = None
        self.correlation_id = -1

    def forget_request(self) -> None:
        self.request = self.wire_request = None


@dataclass(frozen=True, slots=True)
class Caller:
    """identity: proven on internal connections; the peer must prove itself, too. None: nobody proves anything."""

    address: Address
    identity: Identity | None
    client_id: str
    random_bytes: Callable[[int], bytes]
    log: ProofLog


class SocketCalls(asyncio.BufferedProtocol):
    """The owner starts `run` once. on_end: called once, with whether the socket was ready for calls.

    reached: a peer accepted the connection, and then answered or closed it. is_lane: it speaks Kafka's protocol.
    introduced: set when `ready` or `ended`.
    """

    def __init__(
        self,
        caller: Caller,
        limits: WireLimits,
        scratch: memoryview,
        turn: Turn,
        on_end: Callable[[SocketCalls, bool], None],
    ) -> None:
        self._caller, self._limits, self._turn, self._on_end = caller, limits, turn, on_end
        self._reader = FrameReader(limits.max_frame_bytes, scratch, self._on_frame, trusted=True)
        self._transport: asyncio.Transport | None = None
        self._unsent: deque[PendingCall] = deque()
        self._waiting: deque[PendingCall] = deque()
        self._introduction: asyncio.Future[memoryview] | None = None
        self._next_id = _INTRODUCTION_ID
        self._full = False  # the transport takes no more now
        self.ready = self.ended = False
        self.reached = self.is_lane = False
        self.end_reason = ""
        self.introduced = asyncio.Event()
        self.versions: versions.Versions = {}
        self.grpc_address: Address | None = None

    def __len__(self) -> int:
        """Calls that were not sent yet, and calls that wait for their responses."""
        return len(self._unsent) + len(self._waiting)

    def add(self, call: PendingCall) -> None:
        """Queue the call behind those that were added before, and send it if that is possible now."""
        if self.ended:
            call.fail_by("the connection is closed")
        elif len(self._unsent) >= self._limits.max_unsent_calls:
            call.fail_by(f"{len(self._unsent)} calls wait to be sent already")
        else:
            self._unsent.append(call)
            self._send()

    async def run(self) -> None:
        """Open the socket and introduce this node. Any failure ends the socket; its calls keep their own deadlines."""
        loop = asyncio.get_running_loop()
        address = self._caller.address
        try:
            async with asyncio.timeout(self._limits.connect_timeout_ms / 1000):
                await loop.create_connection(lambda: self, address.host, address.port)
                await self._introduce()
        except Malformed as error:
            self.reached = True
            self.end(f"{address} does not speak Kafka's protocol: {error}")
        except ApiError as refusal:
            self._caller.log.refuses_us(address, refusal, loop.time())
            self._refuse(refusal)
        except NotProven as error:
            self._caller.log.is_not_proven(address, str(error), loop.time())
            self.end(f"{address} has not proven itself: {error}")
        except TimeoutError:
            self.end(self._too_late())
        except OSError as error:
            self.end(f"no connection to {address}: {error.strerror or error}")

    def _too_late(self) -> str:
        limit_ms = self._limits.connect_timeout_ms
        if self.is_unanswered:
            return f"{self._caller.address} {SILENT.format(limit_ms)}"
        return f"no connection to {self._caller.address} within {limit_ms} ms"

    @property
    def is_unanswered(self) -> bool:
        """The peer has accepted the connection, and has not introduced itself yet."""
        return self._transport is not None and not self.introduced.is_set()

    def end(self, reason: str) -> None:
        """Fail every call that has not ended, and close the socket. May be called again."""
        if self.ended:
            return
        self.ended, self.end_reason = True, reason
        self.introduced.set()
        if self._transport is not None:
            self._transport.abort()
        if self._introduction is not None and not self._introduction.done():
            self._introduction.set_exception(ConnectionResetError(reason))
        calls = [*self._waiting, *self._unsent]
        self._waiting.clear()
        self._unsent.clear()
        for call in calls:
            call.fail_by(f"{self._caller.address}: {reason}")
        self._on_end(self, self.ready)

    # --- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.max_unsent_bytes)
        if self.ended:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self.ended:
            return
        try:
            self._turn.run(self._reader.received, nbytes)
        except Malformed as error:
            self._protocol_error(str(error))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.reached = self.reached or not self.ended  # it hung up; it may speak another protocol
        self.end("the peer closed the connection" if exc is None else f"the connection broke: {exc}")

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._send()

    # --- introduction

    async def _introduce(self) -> None:
        """Raises Malformed if the peer's answers are not those of a lane."""
        self.versions, self.grpc_address = versions.read_answer(
            await self._exchange(versions.ask(_INTRODUCTION_ID, self._caller.client_id))
        )
        self.is_lane = True
        if self._caller.identity is not None:
            await self._prove(self._caller.identity)
        if not self.ended:
            self.ready = self.reached = True
            self.introduced.set()
            self._send()

    async def _prove(self, own: Identity) -> None:
        """Both sides prove themselves. Raises ApiError if the peer refuses, NotProven, Malformed."""
        if sasl.HANDSHAKE_KEY not in self.versions:
            self.end("it asks nodes for no proof; this is not the address of an internal listener")
            return
        scram = ScramClient(own.keys, own.peer, new_nonce(self._caller.random_bytes(NONCE_BYTES)))
        try:
            sasl.read_answer(sasl.HANDSHAKE_KEY, await self._exchange(sasl.ask_handshake(_INTRODUCTION_ID)))
        except ApiError as refusal:
            if refusal.code is not ErrorCode.UNSUPPORTED_SASL_MECHANISM or not own.secret_in_clear:
                raise
            await self._show_secret(own)
            return
        answer = await self._authenticate(scram.first())
        scram.verify(await self._authenticate(scram.final(answer)))

    async def _show_secret(self, own: Identity) -> None:
        """To a peer of software from before there were proofs. Raises ApiError, Malformed."""
        ask = sasl.ask_handshake(_INTRODUCTION_ID, clear_secret.MECHANISM)
        sasl.read_answer(sasl.HANDSHAKE_KEY, await self._exchange(ask))
        await self._authenticate(clear_secret.to_plain(own))

    async def _authenticate(self, message: bytes) -> bytes:
        frame = await self._exchange(sasl.ask_authenticate(_INTRODUCTION_ID, message))
        return bytes(sasl.read_answer(sasl.AUTHENTICATE_KEY, frame)["auth_bytes"])

    def _refuse(self, refusal: ApiError) -> None:
        """The peer serves nothing to this node: answer the calls that wait, and end."""
        self.reached = True
        assert not self._waiting, "a call was sent before the proof"
        while self._unsent:
            call = self._unsent.popleft()
            if call.answered:
                call.succeed(failure(BY_REQUEST[type(call.request)].method, refusal))
            else:
                call.fail(NotDelivered(f"{call.name}: {refusal}"))
        self.end(str(refusal))

    async def _exchange(self, frame: Frame) -> memoryview:
        assert self._transport is not None
        if self.ended:
            raise ConnectionResetError("the connection is closed")
        self._introduction = asyncio.get_running_loop().create_future()
        send(self._transport, frame)
        try:
            return await self._introduction
        finally:
            self._introduction = None

    # --- calls

    def _send(self) -> None:
        while self._unsent and self.ready and not self._full and not self.ended:
            call = self._unsent.popleft()
            if not call.is_over:  # else it has timed out, or was cancelled
                self._send_one(call)

    def _send_one(self, call: PendingCall) -> None:
        api = BY_REQUEST[type(call.request)]
        oldest, newest = self.versions.get(api.key, (0, -1))
        version = api.version_for(call.request, min(api.newest, newest))
        if version < max(api.oldest, oldest):
            text = f"{self._caller.address} serves no version of {api.method.name} by the lane that is known here"
            call.fail(NotServed(text))
            return
        header = RequestHeader(api.key, version, self._new_id(), self._caller.client_id)
        try:
            frame = encode_request(api, header, call.request)
        except Exception as mistake:  # of this caller, which gets it; other callers' calls go on
            call.fail(mistake)
            return
        size_bytes = sum(map(len, frame)) - LENGTH_BYTES
        if size_bytes > self._limits.max_frame_bytes:
            text = f"{api.method.name}: {size_bytes} bytes; a message may have {self._limits.max_frame_bytes}"
            call.fail(NotDelivered(text))
            return
        call.sent, call.correlation_id = True, header.correlation_id
        call.wire_request = WireRequest(api, header, call.request)
        assert self._transport is not None
        if call.answered:
            self._waiting.append(call)
        send(self._transport, frame)
        if not call.answered:
            call.succeed(None)

    def _new_id(self) -> int:
        self._next_id = self._next_id % _MAX_ID + 1
        return self._next_id

    def _on_frame(self, frame: memoryview) -> None:
        if not self.ready:
            if self._introduction is None or self._introduction.done():
                self._protocol_error("it sent a response without a request")
            else:
                self._introduction.set_result(frame)
            return
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if not self._waiting:
            self._protocol_error("it sent a response without a request")
            return
        call = self._waiting.popleft()
        if correlation_id != call.correlation_id:
            call.fail(OutcomeUnknown(f"the response is to call {correlation_id}, not {call.correlation_id}"))
            self._protocol_error("its responses are out of order")
            return
        if call.is_over:
            return  # it has timed out, or was cancelled
        assert call.wire_request is not None
        try:
            call.succeed(decode_response(call.wire_request, frame))
        except Malformed as error:
            call.fail(OutcomeUnknown(f"the response cannot be read: {error}"))

    def _protocol_error(self, reason: str) -> None:
        introduction = self._introduction
        if introduction is not None and not introduction.done():
            introduction.set_exception(Malformed(reason))
        else:
            self.end(reason)
