"""One connection of a listener: frames in, handlers started in their order, answers out in that order.

Shell. Answers that one turn of the loop brings leave in one piece. Reading pauses while this connection has enough at
work or had enough of this turn, while its peer leaves answers lying, or while the node holds too much; nothing is
dropped. A peer whose bytes cannot be read is closed with one log line, and nobody else notices.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.produce import ProduceRequest
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.transport import ORDERED
from quorumlog.wire import refused, sasl, versions
from quorumlog.wire.answering import Answering, Slot
from quorumlog.wire.apis import BY_KEY
from quorumlog.wire.codec import Asked, Frame, decode_request, encode_response
from quorumlog.wire.cursor import Cursor
from quorumlog.wire.framing import FrameReader
from quorumlog.wire.header import API_VERSIONS_KEY, FIXED, RequestHeader, read_fixed
from quorumlog.wire.malformed import Malformed, Unsupported
from quorumlog.wire.sending import send
from quorumlog.wire.steps import Steps

if TYPE_CHECKING:
    from quorumlog.wire.server import Serving

_log = logging.getLogger(__name__)
_LOCAL_APIS = (API_VERSIONS_KEY, sasl.HANDSHAKE_KEY, sasl.AUTHENTICATE_KEY, refused.JOIN_GROUP_KEY)
_BY_STEPS = (ProduceRequest, FetchRequest)  # their handlers await nothing but futures
_LOCAL_VERSIONS = {**sasl.SASL_VERSIONS, **refused.REFUSED_VERSIONS}
AT_ONCE_MAX = 16  # requests whose handlers waited for nothing, before all others have a turn: a read may hold 1,000


class ServedConnection(asyncio.BufferedProtocol):
    """serving: what all connections of the listener share."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._reader = FrameReader(serving.limits.max_frame_bytes, serving.scratch, self._on_frame)
        self._answering = Answering(serving.limits)
        self._context = serving.dispatch.context(Caller("", None))
        self._waiting: deque[memoryview] = deque()  # whole frames that may not be begun yet
        self._transport: asyncio.Transport | None = None
        self._unsent_bytes = 0  # as charged to the node
        self._paused_reading = self._closing = False
        self._ended = False  # the peer sends no more
        self._is_beginning = False  # a request, whose answer may be there before its handler has waited
        self._leaves_soon = False
        self._at_once = 0  # requests answered as soon as they were begun, since all others had a turn
        self.stalled_since_s: float | None = None  # loop time since when the peer takes no answers
        self.active_s = serving.loop.time()

    # --- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._serving.limits.max_unsent_bytes)
        if self._serving.closed:
            self.cut()
        elif not self._serving.admit(self):
            self.close(f"{self._serving.limits.max_connections} connections are open already (max.connections)")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.active_s = self._serving.loop.time()
        if self._closing:
            return
        try:
            self._reader.received(nbytes)
        except Malformed as error:
            self.close(str(error))

    def eof_received(self) -> bool:
        """What a peer sent before it left is still carried out (acks=0), and answered if it listens on."""
        if self._reader.in_frame:
            _log.debug("%s left in the middle of a frame", self.peer)
        self._ended = True
        return not self.idle

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        node_bytes = self._serving.node_bytes
        node_bytes.forget(self._pump)
        self._waiting.clear()
        held_bytes = self._unsent_bytes + self._answering.handled_bytes
        for slot in self._answering.cancel():
            self._ungrant(slot)
        self._unsent_bytes = 0
        self._serving.left(self)
        self._serving.dispatch.close(self._context)
        node_bytes.give_back(held_bytes)

    def pause_writing(self) -> None:
        self.stalled_since_s = self._serving.loop.time()

    def resume_writing(self) -> None:
        self.stalled_since_s = None
        self._charge_unsent()
        self._pump()

    # --- requests

    @property
    def idle(self) -> bool:
        return not self._answering and not self._waiting

    @property
    def peer(self) -> str:
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f"{name[0]}:{name[1]}" if name else "a peer"

    def _on_frame(self, frame: memoryview) -> None:
        self._waiting.append(frame)
        self._pump()

    def _pump(self) -> None:
        """Begin what may be begun, and read on if that was all."""
        while self._waiting and not self._closing and self._may_begin(self._waiting[0]):
            frame = self._waiting.popleft()
            self._is_beginning = True
            try:
                self._begin(frame)
            except (Malformed, Unsupported) as error:
                self.close(str(error))
            finally:
                self._is_beginning = False
            if self._answering.is_due:
                self._flush()
                self._count_at_once()
        self._pause_or_resume()
        if self._ended and self.idle and self._transport is not None:
            self._transport.close()

    def _count_at_once(self) -> None:
        self._at_once += 1
        if self._at_once == AT_ONCE_MAX:
            self._serving.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._at_once = 0
        self._pump()

    def _may_begin(self, frame: memoryview) -> bool:
        if self.stalled_since_s is not None or self._at_once >= AT_ONCE_MAX:
            return False
        if self._answering and not self._answering.has_room(_is_ordered(frame)):
            return False
        if self._serving.node_bytes.has_room:
            return True
        self._serving.node_bytes.wait(self._pump)
        return False

    def _pause_or_resume(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or self._ended:
            return
        pause = bool(self._waiting)
        if pause != self._paused_reading:
            self._paused_reading = pause
            if pause:
                transport.pause_reading()
            else:
                transport.resume_reading()

    def _begin(self, frame: memoryview) -> None:
        """Raises Malformed, Unsupported."""
        cursor = Cursor(frame)
        fixed = read_fixed(cursor)
        if fixed.api_key in _LOCAL_APIS:
            self._begin_slot(frame, ordered=False).answer = self._answer_locally(cursor, fixed)
            return
        if not versions.serves(self._serving.versions, fixed):
            raise Unsupported(f"api {fixed.api_key} version {fixed.version} is not served")
        asked = decode_request(BY_KEY[fixed.api_key], cursor, fixed)
        self._context.client_id = asked.header.client_id
        slot = self._begin_slot(frame, type(asked.request) in ORDERED)
        if isinstance(asked.request, FetchRequest):
            slot.granted_bytes = self._serving.node_bytes.grant(asked.request.max_bytes)
            if slot.granted_bytes != asked.request.max_bytes:
                asked = Asked(asked.api, asked.header, replace(asked.request, max_bytes=slot.granted_bytes))
        self._start(slot, asked)

    def _start(self, slot: Slot, asked: Asked) -> None:
        name = asked.api.method.name
        if type(asked.request) in _BY_STEPS:
            slot.running = steps = Steps(self._answer(slot, asked), name, self._serving.on_crash)
            steps.go_on()
        else:
            told = f"{name} from {asked.header.client_id or 'a peer'}"
            slot.running = self._serving.nursery.start(self._answer(slot, asked), told)

    def _ungrant(self, slot: Slot) -> None:
        granted_bytes, slot.granted_bytes = slot.granted_bytes, 0
        self._serving.node_bytes.ungrant(granted_bytes)

    def _begin_slot(self, frame: memoryview, ordered: bool) -> Slot:
        self._serving.node_bytes.take(len(frame))
        return self._answering.begin(len(frame), ordered)

    async def _answer(self, slot: Slot, asked: Asked) -> None:
        try:
            reply = await self._serving.dispatch.reply(self._context, asked.api.method, asked.request)
        finally:
            self._ungrant(slot)
        slot.last = reply.last
        try:
            slot.answer = [] if reply.message is None else encode_response(asked, reply.message)
        except Exception as error:
            self._serving.on_crash(f"answer of {asked.api.method.name}", error)
            slot.answer, slot.last = [], True
        if not self._is_beginning:
            self._leave_soon()

    def _leave_soon(self) -> None:
        """Now where nothing else is at work; else together with what else this turn of the loop answers."""
        if len(self._answering) == 1:
            self._leave()
        elif not self._leaves_soon:
            self._leaves_soon = True
            self._serving.loop.call_soon(self._leave)

    def _leave(self) -> None:
        self._leaves_soon = False
        self._flush()
        self._pump()

    def _answer_locally(self, cursor: Cursor, fixed: RequestHeader) -> Frame:
        """What concerns the connection itself. Raises Malformed, Unsupported."""
        serving = self._serving
        if fixed.api_key == API_VERSIONS_KEY:
            return versions.answer(cursor, fixed, serving.versions, serving.grpc_address())
        low, high = _LOCAL_VERSIONS[fixed.api_key]
        if not low <= fixed.version <= high:
            raise Unsupported(f"api {fixed.api_key} version {fixed.version} is not served")
        if fixed.api_key == refused.JOIN_GROUP_KEY:
            return refused.refuse(cursor, fixed)
        values = sasl.read_request(cursor, fixed)
        internal = serving.dispatch.listener.internal
        if fixed.api_key == sasl.HANDSHAKE_KEY:
            return sasl.answer_handshake(fixed, values["mechanism"], internal)
        if internal:
            claimed = sasl.from_bytes(values["auth_bytes"])
            serving.dispatch.close(self._context)
            self._context = serving.dispatch.context(Caller(self._context.client_id, claimed))
        return sasl.answer_authenticate(fixed, self._context.refusal)

    # --- answers

    def _flush(self) -> None:
        buffers, done_bytes, last = self._answering.take()
        transport = self._transport
        if transport is not None and not transport.is_closing():
            send(transport, buffers)
            self._charge_unsent()
            if last:
                self._closing = True
                transport.close()
        if done_bytes:
            self._serving.node_bytes.give_back(done_bytes)

    def _charge_unsent(self) -> None:
        """Tell the node how much of the answers waits for the peer."""
        transport = self._transport
        now_bytes = 0 if transport is None or transport.is_closing() else transport.get_write_buffer_size()
        before, self._unsent_bytes = self._unsent_bytes, now_bytes
        if now_bytes > before:
            self._serving.node_bytes.take(now_bytes - before)
        elif before > now_bytes:
            self._serving.node_bytes.give_back(before - now_bytes)

    def close(self, reason: str) -> None:
        """Cut the peer off, with one log line."""
        if self._closing or self._transport is None:
            return
        self._closing = True
        listener = self._serving.dispatch.listener
        _log.warning("closed the connection of %s at %s %s: %s", self.peer, listener.name, listener.address, reason)
        self._transport.abort()

    def cut(self) -> None:
        """The listener closes."""
        self._closing = True
        self._answering.stop()
        if self._transport is not None:
            self._transport.abort()


def _is_ordered(frame: memoryview) -> bool:
    """By the API key alone; a frame too short to have one is begun, and refused, by itself."""
    if len(frame) < FIXED.size:
        return False
    api = BY_KEY.get(int.from_bytes(frame[:2], "big"))
    return api is not None and api.method.request in ORDERED
