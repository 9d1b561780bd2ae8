"""One connection of a listener: frames in, handlers begun in their order, answers out in that order.

Shell around `connection_state.py` (what may be done now) and `answering.py` (the requests at work). Reading pauses
while the connection has enough at work or had enough of this turn of the loop, while its peer takes no answers, or
while the node holds too much; nothing is dropped. A peer whose bytes cannot be read is cut off with one log line, and
no other connection notices.

A frame is charged to the node from when it is begun until it is answered; one of an ordered request until its handler
has ended, also where the connection is gone before that. One that did not arrive in one read is charged before more of
it is read, with its whole length, as Kafka's memory pool does (KIP-72): a frame that has its charge can always be
received and begun, so unfinished frames never wait for each other. All unfinished frames together hold a part of the
bytes; a peer that sends nothing of its frame is cut off soon while others wait to send theirs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from quorumlog.errors import ApiError
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.produce import ProduceRequest
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.serving.request_parts import Stepped, Timing
from quorumlog.rpc.serving.request_time import Timed, Watch
from quorumlog.rpc.transport import ORDERED
from quorumlog.security.tls.peer import fingerprint
from quorumlog.slices import Sliced
from quorumlog.turn import in_turns
from quorumlog.wire.format.cursor import Cursor, Foreign, Malformed, Unsupported
from quorumlog.wire.format.framing import FrameReader
from quorumlog.wire.format.header import FIXED, RequestHeader, read_fixed
from quorumlog.wire.protocol import sasl, versions
from quorumlog.wire.protocol.apis import BY_KEY, Api
from quorumlog.wire.protocol.codec import (
    Frame,
    WireRequest,
    decode_request,
    decode_request_sliced,
    encode_response_sliced,
)
from quorumlog.wire.protocol.delegation_tokens import TOKEN_VERSIONS, answer_token_request
from quorumlog.wire.serving import local_apis
from quorumlog.wire.serving.answering import Answering, Slot
from quorumlog.wire.serving.connection_proof import ConnectionProof
from quorumlog.wire.serving.connection_state import ConnectionState, Happened, Phase, Sending
from quorumlog.wire.serving.counts import software_of
from quorumlog.wire.serving.gate import FOREIGN
from quorumlog.wire.serving.local_apis import LOCAL_APIS
from quorumlog.wire.serving.outgoing import Outgoing, writer_of
from quorumlog.wire.serving.taskless import TasklessHandler
from quorumlog.wire.serving.tls_transport import TlsTransport

if TYPE_CHECKING:
    from quorumlog.wire.serving.server import Serving


_log = logging.getLogger(__name__)

SLICED_BYTES = 32 * 1024  # from here on a request is read in slices: those of about 2,000 partitions
TASKLESS = (ProduceRequest, FetchRequest)  # their handlers await nothing but futures


def is_ordered(frame: memoryview) -> bool:
    """By the API key alone. A frame that is too short to have one is begun, and refused, by itself."""
    if len(frame) < FIXED.size:
        return False
    api = BY_KEY.get(int.from_bytes(frame[:2], "big"))
    return api is not None and api.method.request in ORDERED


def is_read_in_slices(frame: memoryview, api: Api) -> bool:
    """Records are not looked at, so a large frame of theirs is read fast."""
    return len(frame) >= SLICED_BYTES and api.method.request not in TASKLESS


def _timed(steps: Coroutine[Any, Any, None], watch: Watch | None) -> Coroutine[Any, Any, None]:
    return steps if watch is None else Timed(steps, watch)


class ServedConnection(asyncio.BufferedProtocol):
    """serving: what all connections of the listener share."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._state = ConnectionState()
        self._node_bytes = serving.node_bytes
        max_bytes = serving.limits.first_max_frame_bytes(internal=serving.dispatch.listener.internal)
        self._reader = FrameReader(max_bytes, serving.scratch, self._on_frame, self._on_begun)
        self._carry_out = serving.dispatch.reply
        self._answering = Answering(serving.limits)
        self._context = serving.dispatch.context(Caller(""))
        identity = serving.dispatch.identity if serving.dispatch.listener.internal else None
        self._proof = ConnectionProof(identity, serving.random_bytes, serving.node_auth, serving.is_denied)
        # Whole frames that may not be begun yet, and when they came (s)
        self._waiting: deque[tuple[memoryview, float]] = deque()
        self._came_s = 0.0  # when this read was done; frames that were held back count from when they were not
        self._book = serving.dispatch.book
        self._leaving: deque[tuple[int, Timing]] = deque()  # answers that the socket has not taken, by their ends
        self._given_bytes = 0  # to the socket, since answers were last all sent; kept while any of `_leaving` is not
        self._transport: asyncio.Transport | None = None
        self._outgoing: Outgoing | None = None
        self._unsent_bytes = 0  # of answers, as charged to the node
        self._reserved_bytes = 0  # charged for the unfinished frame, or for the last whole frame while it waits
        self._unfinished_bytes = 0  # of those, for a frame that is not whole
        self._wanted_bytes = 0  # the length of an unfinished frame that waits to be charged; nothing more is read
        self._fingerprint = ""  # of the peer's certificate; empty: it has shown none
        self._is_stranger = False  # it has to log in
        self._says_software: tuple[str, str] | None = None  # the client's name and version
        self._counted_software: tuple[str, str] | None = None
        self._muted: asyncio.TimerHandle | None = None  # while its client is held back (KIP-219)
        self.active_s = self.accepted_s = serving.loop.time()

    # --- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        self._context.client_host = self._peer_host
        if isinstance(transport, TlsTransport):
            self._proof.shown(transport.certificate)
            self._fingerprint = "" if transport.certificate is None else fingerprint(transport.certificate)
        self._outgoing = Outgoing(
            self._transport, writer_of(self._transport), self._serving.send_turns, self._on_progress
        )
        if self._serving.closed:
            self.cut()
        elif reason := self._serving.admit(self, self._peer_host):
            self.close(reason)
        else:
            self._state.step(Happened.ACCEPTED)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    @property
    def missing_bytes(self) -> int:
        """Of a large frame, the rest."""
        return self._reader.missing_bytes

    def buffer_updated(self, nbytes: int) -> None:
        self.active_s = self._came_s = self._serving.loop.time()
        if not self._state.is_open:
            return
        try:
            self._serving.turn.run(self._reader.received, nbytes)
        except Foreign as error:
            self._end_foreign(error)
        except Malformed as error:
            self.close(str(error))

    def eof_received(self) -> bool:
        """What a peer has sent before it left is still carried out (acks=0), and answered in case it listens."""
        if self._reader.in_frame:
            _log.debug("%s left in the middle of a frame", self.peer)
            self._drop_unfinished()
        self._count_probe()
        self._state.step(Happened.PEER_ENDED)
        if self.idle:
            self._finish()
        return True

    def _count_probe(self) -> None:
        """The peer leaves now. Has it been here for nothing?"""
        if not self._came_s and self._state.phase is Phase.READING:
            self._serving.gate.probed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._count_probe()
        self._state.step(Happened.SOCKET_LOST)
        self._unmute()
        node_bytes = self._node_bytes
        node_bytes.forget(self._pump)
        self._waiting.clear()
        if self._outgoing is not None:
            self._outgoing.drop()
        held_bytes = self._unsent_bytes + self._reserved_bytes
        for slot in self._answering.leave():
            self._return_grant(slot)
            if slot.goes_on:
                self._serving.goes_on(slot)
            else:
                held_bytes += slot.size_bytes
        self._frame_ended()
        self._unsent_bytes = self._reserved_bytes = self._wanted_bytes = 0
        self._forget_software()
        self._serving.left(self)
        self._serving.dispatch.close(self._context)
        node_bytes.give_back(held_bytes)

    def resume_writing(self) -> None:
        if self._outgoing is not None:
            self._outgoing.resumed()

    def _on_progress(self) -> None:
        """The peer has taken answers."""
        if self._charge_unsent():
            self._pump()

    # --- for the sweep of the listener

    @property
    def idle(self) -> bool:
        return not self._answering and not self._waiting and not self._wanted_bytes

    @property
    def is_unproven(self) -> bool:
        """The caller must prove that it is a node, and has not done so."""
        return self._proof.is_needed

    @property
    def others_wait(self) -> bool:
        """Peers wait for the bytes that this one may hold."""
        return self._node_bytes.others_wait

    @property
    def is_receiving(self) -> bool:
        """A frame is charged to the node, and waits for its peer to send the rest."""
        return self._reserved_bytes > 0 and self._reader.in_frame and self._state.phase is Phase.READING

    @property
    def stalled_since_s(self) -> float | None:
        """Loop time (s) since when the peer takes no answers."""
        return self._state.stalled_since_s

    @property
    def peer(self) -> str:
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f"{name[0]}:{name[1]}" if name else "a peer"

    @property
    def _peer_host(self) -> str:
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if name else ""

    # --- requests

    def _on_frame(self, frame: memoryview) -> None:
        self._frame_ended()
        self._waiting.append((frame, self._came_s))
        self._pump()

    def _on_begun(self, size_bytes: int) -> None:
        self._wanted_bytes = size_bytes
        self._pump()

    def _pump(self) -> None:
        """Begin what may be begun; then read on if nothing waits, or end if the peer has ended and nothing is left."""
        state = self._state
        while self._waiting and state.may_begin and self._muted is None and self._has_room_for(self._waiting[0][0]):
            state.begin()
            try:
                self._begin(*self._waiting.popleft())
            except (Malformed, Unsupported) as error:
                self.close(str(error))
            finally:
                state.begun()
            if self._answering.is_due:
                self._send_answers()
                if state.answered_at_once():
                    self._serving.loop.call_soon(self._after_others)
        if self._wanted_bytes and not self._waiting and state.is_open:
            self._reserve()
        if state.has_backlog(bool(self._waiting) or self._wanted_bytes > 0 or self._muted is not None):
            self._pause_or_resume()
        if state.phase is Phase.DRAINING and self.idle:
            self._finish()

    def _mute(self, throttle_ms: int) -> None:
        """What it has begun is answered; nothing more is begun or read before the later one of two deadlines."""
        loop = self._serving.loop
        until_s = loop.time() + throttle_ms / 1000
        if self._state.is_open and (self._muted is None or self._muted.when() < until_s):
            self._unmute()
            self._muted = loop.call_at(until_s, self._heard_again)
            self._serving.counts.throttled += 1
            self.active_s = until_s  # the pause is ours: it is not idle

    def _unmute(self) -> None:
        if self._muted is not None:
            self._muted.cancel()
            self._muted = None
            self._serving.counts.throttled -= 1

    def _heard_again(self) -> None:
        self._muted = None
        self._serving.counts.throttled -= 1
        now_s = self._serving.loop.time()
        self._waiting = deque((frame, now_s) for frame, _ in self._waiting)  # their pause is no queue of ours
        self._pump()

    def _after_others(self) -> None:
        self._state.others_had_turn()
        self._pump()

    def _has_room_for(self, frame: memoryview) -> bool:
        if self._answering and not self._answering.has_room(is_ordered(frame)):
            return False
        if self._node_bytes.has_room or (self._reserved_bytes and not self._reader.in_frame):
            return True
        self._node_bytes.wait(self._pump)
        return False

    def _reserve(self) -> None:
        """Charge the unfinished frame, if there is room."""
        if not self._reader.in_frame:  # the transport read on in spite of the pause; the frame was charged like others
            self._wanted_bytes = 0
        elif not self._node_bytes.may_receive:
            self._node_bytes.wait_to_receive(self._pump)
        else:
            self._node_bytes.receive(self._wanted_bytes)
            self._unfinished_bytes = self._wanted_bytes
            self._reserved_bytes, self._wanted_bytes = self._reserved_bytes + self._wanted_bytes, 0

    def _frame_ended(self) -> None:
        """The unfinished frame is whole now, or was dropped."""
        unfinished_bytes, self._unfinished_bytes = self._unfinished_bytes, 0
        if unfinished_bytes:
            self._node_bytes.received(unfinished_bytes)

    def _drop_unfinished(self) -> None:
        self._frame_ended()
        reserved_bytes, self._reserved_bytes, self._wanted_bytes = self._reserved_bytes, 0, 0
        self._node_bytes.give_back(reserved_bytes)

    def _pause_or_resume(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._state.phase is Phase.PAUSED:
            transport.pause_reading()
        else:
            self.active_s = self._serving.loop.time()  # the pause was ours
            transport.resume_reading()

    @property
    def why_over(self) -> str:
        """Why the node at the other end may ask for nothing more; "" if it may."""
        protection = self._serving.protection
        return "" if protection is None else self._proof.why_over(protection.unix_ms())

    def _begin(self, frame: memoryview, came_s: float) -> None:
        """came_s: when the frame was whole. Raises Malformed, Unsupported."""
        if self._serving.dispatch.listener.internal and (reason := self.why_over):
            self.close(reason)
            return
        cursor = Cursor(frame)
        fixed = read_fixed(cursor)
        if fixed.api_key in LOCAL_APIS:
            local_apis.check_version(fixed)
            slot = self._begin_slot(frame, ordered=False)
            if fixed.api_key == sasl.AUTHENTICATE_KEY:
                self._authenticate(slot, cursor, fixed)
            else:
                slot.answer = self._answer_locally(cursor, fixed)
            return
        if fixed.api_key in TOKEN_VERSIONS and not self._serving.dispatch.listener.internal:
            slot = self._begin_slot(frame, ordered=False)
            slot.answer = answer_token_request(cursor, fixed, self._context.principal)
            return
        if not versions.serves(self._serving.versions, fixed):
            raise Unsupported(f"api {fixed.api_key} version {fixed.version} is not served")
        api, watch, book = BY_KEY[fixed.api_key], self._serving.dispatch.watch(), self._book
        timing = None if book is None else book.begin(api.method.name, len(frame), came_s)
        if is_read_in_slices(frame, api):
            slot = self._begin_slot(frame, api.method.request in ORDERED)
            slot.timing = timing
            reading = self._read_and_answer(slot, decode_request_sliced(api, cursor, fixed), watch)
            label = f"{api.method.name} from {self.peer}"
            slot.running = self._serving.nursery.start(self._measured(slot, reading, watch), label)
            return
        wire_request = decode_request(api, cursor, fixed)
        self._context.client_id = wire_request.header.client_id
        self._context.correlation = wire_request.header.correlation_id
        slot = self._begin_slot(frame, type(wire_request.request) in ORDERED)
        if timing is not None:
            slot.timing = timing
            self._asks(timing, wire_request)
        if isinstance(wire_request.request, FetchRequest):
            slot.granted_bytes = self._node_bytes.grant(wire_request.request.max_bytes)
            if slot.granted_bytes != wire_request.request.max_bytes:
                wire_request = WireRequest(
                    wire_request.api, wire_request.header, replace(wire_request.request, max_bytes=slot.granted_bytes)
                )
        self._start(slot, wire_request, watch)

    def _start(self, slot: Slot, wire_request: WireRequest, watch: Watch | None) -> None:
        name, answering = wire_request.api.method.name, self._answer(slot, wire_request, watch)
        if type(wire_request.request) in TASKLESS:
            slot.running = handler = TasklessHandler(
                _timed(answering, watch), name, self._serving.on_crash, slot.timing, self._book
            )
            handler.go_on()
        else:
            label = f"{name} from {wire_request.header.client_id or 'a peer'}"
            slot.running = self._serving.nursery.start(self._measured(slot, answering, watch), label)

    def _measured(self, slot: Slot, steps: Coroutine[Any, Any, None], watch: Watch | None) -> Coroutine[Any, Any, None]:
        """Of a handler that is a task."""
        if slot.timing is not None and self._book is not None:
            steps = Stepped(steps, slot.timing, self._book, self._context)
        return _timed(steps, watch)

    def _asks(self, timing: Timing, wire_request: WireRequest) -> None:
        timing.correlation = wire_request.header.correlation_id
        timing.asks(wire_request.request)

    def _begin_slot(self, frame: memoryview, ordered: bool) -> Slot:
        new_bytes = len(frame)
        if self._reserved_bytes and not self._reader.in_frame:  # it was charged before it was whole
            new_bytes -= min(new_bytes, self._reserved_bytes)
            self._reserved_bytes -= len(frame) - new_bytes
        self._node_bytes.take(new_bytes)
        return self._answering.begin(len(frame), ordered)

    def _return_grant(self, slot: Slot) -> None:
        granted_bytes, slot.granted_bytes = slot.granted_bytes, 0
        self._node_bytes.ungrant(granted_bytes)

    def _answer_locally(self, cursor: Cursor, fixed: RequestHeader, *, tells_grpc: bool = True) -> Frame:
        """tells_grpc: where the node serves gRPC. Raises Malformed."""
        serving = self._serving
        internal, own = serving.dispatch.listener.internal, serving.dispatch.identity
        clear = own is not None and own.secret_in_clear
        announced = serving.features.read()
        address = serving.grpc_address() if tells_grpc else None
        return local_apis.answer(
            cursor,
            fixed,
            serving.version_answers,
            address,
            internal,
            announced,
            clear,
            serving.node_auth,
            self._heard_software,
        )

    def _heard_software(self, name: str | None, version: str | None) -> None:
        """Counted once it is known who the client is: a stranger adds nothing to the metrics."""
        self._forget_software()
        self._says_software = software_of(name, version)
        if not self._is_stranger and not self._serving.dispatch.listener.internal:
            self._count_software()

    def _count_software(self) -> None:
        if self._says_software is not None and self._state.is_open:
            self._counted_software = self._says_software
            self._serving.counts.came(self._counted_software)

    def _forget_software(self) -> None:
        if self._counted_software is not None:
            self._serving.counts.left(self._counted_software)
            self._counted_software = None

    def _authenticate(self, slot: Slot, cursor: Cursor, fixed: RequestHeader) -> None:
        """One message of the caller's proof. Raises Malformed."""
        serving = self._serving
        values = sasl.read_request(cursor, fixed)
        try:
            slot.answer = sasl.answer_authenticate(fixed, self._proof.take(values["auth_bytes"]))
        except ApiError as refusal:
            listener = serving.dispatch.listener
            serving.proof_log.refused(listener, self.peer, self._proof.claimed, refusal, serving.loop.time())
            slot.answer, slot.last = sasl.refuse(fixed, refusal), True
            return
        if self._proof.peer is not None:
            serving.dispatch.close(self._context)
            self._context = serving.dispatch.context(
                Caller(self._context.client_id, self._proof.peer), self._context.client_host
            )
            self._reader.max_frame_bytes = serving.limits.max_frame_bytes

    # --- answers

    async def _read_and_answer(self, slot: Slot, reading: Sliced[WireRequest], watch: Watch | None) -> None:
        """Of a large request: others have turns while it is read."""
        try:
            wire_request = await in_turns(reading)
        except Malformed as error:
            self.close(str(error))
            return
        self._context.client_id = wire_request.header.client_id
        self._context.correlation = wire_request.header.correlation_id
        if slot.timing is not None:
            self._asks(slot.timing, wire_request)
        await self._answer(slot, wire_request, watch)

    async def _answer(self, slot: Slot, wire_request: WireRequest, watch: Watch | None) -> None:
        try:
            await self._reply(slot, wire_request, watch)
        finally:
            if slot.goes_on:
                self._serving.ended(slot)

    async def _reply(self, slot: Slot, wire_request: WireRequest, watch: Watch | None) -> None:
        context = self._context
        try:
            reply = await self._carry_out(context, wire_request.api.method, wire_request.request, watch)
        finally:
            self._return_grant(slot)
        if slot.goes_on:
            return  # nobody listens
        slot.last = reply.last
        if reply.throttle_ms:
            self._mute(reply.throttle_ms)
        try:
            encoding = None if reply.message is None else encode_response_sliced(wire_request, reply.message)
            slot.answer = [] if encoding is None else await in_turns(encoding)
        except Exception as error:
            self._serving.on_crash(f"answer of {wire_request.api.method.name}", error)
            slot.answer, slot.last = [], True
        if watch is not None:
            self._serving.dispatch.written(context, wire_request.request, watch)
        if slot.timing is not None and self._book is not None:
            slot.timing.replied(reply.message, self._book.now_s())
            slot.timing.throttle_s = reply.throttle_ms / 1000
        sending = self._state.answer_ready(len(self._answering) == 1)
        if sending is Sending.IDLE:
            self._send_answers()
            self._pump()
        elif sending is Sending.SCHEDULED:
            self._serving.loop.call_soon(self._send_scheduled)

    def _send_scheduled(self) -> None:
        self._state.sent_by_loop()
        self._send_answers()
        self._pump()

    def _send_answers(self) -> None:
        """Send what is ready, up to the first answer that is missing."""
        buffers, done_bytes, last = self._answering.take()
        transport, outgoing = self._transport, self._outgoing
        if transport is not None and outgoing is not None and not transport.is_closing():
            outgoing.send(buffers)
            self._charge_unsent()
            if self._answering.taken:
                self._left(buffers)
            if last:
                self._finish()
        if done_bytes:
            self._node_bytes.give_back(done_bytes)

    def _left(self, buffers: Frame) -> None:
        """Answers were given to the socket, which takes them now or later."""
        book, timings = self._book, self._answering.taken
        self._answering.taken = []
        assert book is not None, "who measures has a book"
        now_s = book.now_s()
        if not self._leaving and not self._unsent_bytes:
            for timing in timings:
                timing.sent_s = now_s
                book.end(timing, self._context, now_s)
            return
        self._given_bytes = self._given_bytes + sum(map(len, buffers)) if self._leaving else self._unsent_bytes
        for timing in timings:
            timing.sent_s = now_s
            self._leaving.append((self._given_bytes, timing))
        self._went()

    def _went(self) -> None:
        """The socket has taken what is not unsent."""
        while self._leaving and self._leaving[0][0] <= self._given_bytes - self._unsent_bytes:
            timing = self._leaving.popleft()[1]
            assert self._book is not None, "who measures has a book"
            self._book.end(timing, self._context, self._book.now_s())

    def _charge_unsent(self) -> bool:
        """Charge the node with the answers that the peer has not taken yet. True: it takes answers again."""
        now_bytes = 0 if self._outgoing is None else self._outgoing.unsent_bytes
        before, self._unsent_bytes = self._unsent_bytes, now_bytes
        takes_again = self._state.unsent(now_bytes, self._serving.limits.max_unsent_bytes, self._serving.loop.time())
        if now_bytes > before:
            self._node_bytes.take(now_bytes - before)
        elif before > now_bytes:
            self._node_bytes.give_back(before - now_bytes)
        if self._leaving:
            self._went()
        return takes_again

    # --- the end

    def _finish(self) -> None:
        """Close the socket once the peer has taken its answers."""
        self._state.step(Happened.CLOSED_BY_US)
        if self._outgoing is not None:
            self._outgoing.close()

    @property
    def is_denied(self) -> bool:
        """Its certificate counts no more."""
        return bool(self._fingerprint) and self._serving.is_denied(self._fingerprint)

    def close(self, reason: str) -> None:
        """Cut the peer off, with one log line."""
        if self._transport is None or not self._state.step(Happened.CLOSED_BY_US):
            return
        listener = self._serving.dispatch.listener
        _log.warning("closed the connection of %s at %s %s: %s", self.peer, listener.name, listener.address, reason)
        self._transport.abort()

    def _end_foreign(self, error: Foreign) -> None:
        """The peer speaks another protocol. Probes do that each second, so not each of them has a line."""
        if self._transport is not None and self._state.step(Happened.CLOSED_BY_US):
            listener = self._serving.dispatch.listener
            is_mixed = error.is_tls and not listener.security.tls
            reason = f"TLS to the plain listener {listener.name}" if is_mixed else str(error)
            self._serving.gate.refused(self._transport, FOREIGN, reason)
            self._transport.abort()

    def cut(self) -> None:
        """The listener closes, or the connection was idle for too long."""
        self._state.step(Happened.CLOSED_BY_US)
        self._answering.stop()
        if self._transport is not None:
            self._transport.abort()
