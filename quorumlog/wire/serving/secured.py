"""One connection of a listener that knows its clients: by SASL, or by the certificates that they show.

Until it is known who its client is, a connection is a stranger: small frames, a time, few bytes for all of them
together, and nothing of what it sends reaches a handler. `sasl.session` decides what it may say; this shell reads and
writes the frames of the exchange.

A session ends: with its certificate (also where a login says who the client is) or when that is denied, with its token,
or after `connections.max.reauth.ms`. From then on the connection serves nothing. What was asked for earlier is carried
out, and a record that was written is acknowledged, but a fetch that has waited brings no records, and the connection
ends (KIP-368 closes it with the next request).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.method import Method
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.serving.dispatch import PeerContext, Reply
from quorumlog.rpc.serving.request_time import Watch
from quorumlog.security import login
from quorumlog.security.principal import Principal
from quorumlog.security.sasl import session
from quorumlog.security.sasl.session import Now, Pass, SaslSession
from quorumlog.security.tls.der import BadDer
from quorumlog.settings.security import DENIED_CERTIFICATES
from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.framing import FIRST_BYTES
from quorumlog.wire.format.header import RequestHeader, read_fixed
from quorumlog.wire.protocol import sasl, versions
from quorumlog.wire.protocol.codec import Frame
from quorumlog.wire.serving import local_apis
from quorumlog.wire.serving.answering import Slot
from quorumlog.wire.serving.connection_state import Happened
from quorumlog.wire.serving.protection import Protection
from quorumlog.wire.serving.served import ServedConnection
from quorumlog.wire.serving.tls_transport import TlsTransport

if TYPE_CHECKING:
    from quorumlog.wire.serving.server import Serving

FIRST_STRANGER_BYTES = 4 * 1024  # first buffer of a frame that did not come in one read


class SecuredConnection(ServedConnection):
    """protection: of its listener; it knows clients."""

    def __init__(self, serving: Serving, protection: Protection) -> None:
        super().__init__(serving)
        self._protection = protection
        self._session = None if protection.sasl is None else SaslSession(protection.sasl)
        self._ends_ms: int | None = None  # Unix time when the certificate ends
        self._timer: asyncio.TimerHandle | None = None
        self._renewals = 0  # of the session, that are counted
        self._carry_out = self._carry_out_in_session
        self._is_stranger = self._session is not None
        if self._session is not None:
            self._node_bytes = serving.stranger_bytes
            self._reader.max_frame_bytes = min(protection.max_receive_bytes, serving.limits.max_frame_bytes)
            self._reader.first_bytes = FIRST_STRANGER_BYTES

    # --- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._state.is_open:
            return
        if self._session is not None:
            self._serving.gate.came(self, transport)
            self._timer = self._serving.loop.call_later(self._protection.timeout_ms / 1000, self._is_late)
        if isinstance(transport, TlsTransport) and transport.certificate is not None:
            self._took_certificate(transport.certificate)

    def connection_lost(self, exc: Exception | None) -> None:
        self._no_stranger()
        super().connection_lost(exc)

    # --- who it is

    def _took_certificate(self, shown: bytes) -> None:
        """It says until when, and who it is, unless a login does. A client without one is anonymous, or logs in."""
        certified = self._protection.certified
        if certified is None:
            return
        try:
            says = certified(shown)
        except BadDer:
            self._refuse_shown("its certificate does not say when it ends")
            return
        self._ends_ms = says.not_after_ms
        if self.is_denied:
            self._refuse_shown(f"its certificate {says.fingerprint} is denied ({DENIED_CERTIFICATES})")
        elif self._session is not None:
            return
        elif says.principal is None:
            self._refuse_shown("no rule of ssl.principal.mapping.rules takes the name in its certificate")
        else:
            self._become(says.principal)
            self._tell_done(login.CERTIFICATE, says.principal)

    def _refuse_shown(self, reason: str) -> None:
        self._tell_failed(login.CERTIFICATE, reason)
        self._refuse_client(reason)

    def _tell_done(self, mechanism: str, principal: Principal) -> None:
        listener = self._serving.dispatch.listener.name
        self._protection.on_login(login.done(listener, self._peer_host, mechanism, principal), "")

    def _tell_failed(self, mechanism: str, reason: str) -> None:
        listener = self._serving.dispatch.listener.name
        self._protection.on_login(login.failed(listener, self._peer_host, mechanism), reason)

    def _become(self, principal: Principal) -> None:
        context = self._context
        self._serving.dispatch.close(context)
        caller = Caller(context.client_id, principal=principal)
        self._context = self._serving.dispatch.context(caller, self._peer_host, context.number)

    def _log_in(self, principal: Principal) -> None:
        """The first login of the connection: it is held to the limits of clients from now on."""
        self._no_stranger()
        self._is_stranger = False
        self._count_software()
        self._become(principal)
        strangers, self._node_bytes = self._node_bytes, self._serving.node_bytes
        slots_bytes = self._answering.handled_bytes
        strangers.forget(self._pump)
        self._node_bytes.take(self._unsent_bytes + self._reserved_bytes + slots_bytes - self._unfinished_bytes)
        self._node_bytes.receive(self._unfinished_bytes)
        strangers.received(self._unfinished_bytes)
        strangers.give_back(self._unsent_bytes + self._reserved_bytes + slots_bytes)
        self._reader.max_frame_bytes, self._reader.first_bytes = self._serving.limits.max_frame_bytes, FIRST_BYTES

    def _no_stranger(self) -> None:
        self._serving.gate.left(self)
        if self._timer is not None:
            self._timer.cancel()

    def _is_late(self) -> None:
        self._refuse_client(f"it has not logged in within {self._protection.timeout_ms} ms")

    def refuse(self, reason: str) -> None:
        """`strangers.Stranger`."""
        self._refuse_client(reason)

    def close(self, reason: str) -> None:
        """As of any connection, but strangers are many."""
        if self._is_stranger:
            self._refuse_client(reason)
        else:
            super().close(reason)

    def _refuse_client(self, reason: str) -> None:
        """End it at once; repeated refusals of one address have one line."""
        if self._transport is not None and self._state.step(Happened.CLOSED_BY_US):
            self._no_stranger()
            self._serving.gate.refused(self._transport, "refused", reason)
            self._transport.abort()

    # --- when its session ends

    def _now(self) -> Now:
        return Now(int(self._serving.loop.time() * 1000), self._protection.unix_ms())

    def _is_over(self, now: Now) -> bool:
        return self._certificate_is_over(now) or (self._session is not None and self._session.expired(now))

    def _certificate_is_over(self, now: Now) -> bool:
        return self._ends_ms is not None and (now.unix_ms >= self._ends_ms or self.is_denied)

    async def _carry_out_in_session(
        self, context: PeerContext, method: Method, request: Any, watch: Watch | None = None
    ) -> Reply:
        """Judged when the answer is ready: a fetch may have waited for long."""
        reply = await self._serving.dispatch.reply(context, method, request, watch)
        if type(request) is FetchRequest and self._is_over(self._now()):
            self._serving.gate.strangers.told["expired"] += 1
            return Reply(None, last=True)
        return reply

    # --- requests

    def _begin(self, frame: memoryview, came_s: float) -> None:
        """Raises Malformed, Unsupported."""
        now, of_sasl = self._now(), self._session
        if self._certificate_is_over(now):
            self._end_silently(frame, "its certificate has ended, or is denied")
            return
        if of_sasl is None:
            super()._begin(frame, came_s)
            return
        if of_sasl.expects_token:
            slot = self._begin_slot(frame, ordered=False)
            self._take(slot, of_sasl.authenticate(bytes(frame), now), _bare_reply)
            return
        cursor = Cursor(frame)
        fixed = read_fixed(cursor)
        judged = of_sasl.judge(fixed.api_key, now)
        if judged is Pass.ORDINARY:
            super()._begin(frame, came_s)
        elif isinstance(judged, Pass):
            local_apis.check_version(fixed)
            self._converse(self._begin_slot(frame, ordered=False), cursor, fixed, judged, now)
        else:
            slot = self._begin_slot(frame, ordered=False)
            self._take(slot, judged, lambda reply: versions.refusal(fixed, reply.code) or [])

    def _end_silently(self, frame: memoryview, reason: str) -> None:
        slot = self._begin_slot(frame, ordered=False)
        self._take(slot, session.Reply(is_silent=True, close_after_ms=0, reason=reason), lambda _reply: [])

    def _converse(self, slot: Slot, cursor: Cursor, fixed: RequestHeader, judged: Pass, now: Now) -> None:
        """A request of the exchange. Raises Malformed."""
        assert self._session is not None
        if judged is Pass.VERSIONS:
            slot.answer = self._answer_locally(cursor, fixed, tells_grpc=False)  # to nobody before its login
            known = versions.OLDEST <= fixed.version <= versions.NEWEST
            self._session.versions_answered(ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION)
        elif fixed.api_key == sasl.HANDSHAKE_KEY:
            mechanism = str(sasl.read_request(cursor, fixed)["mechanism"])
            reply = self._session.handshake(mechanism, fixed.version, now)
            self._take(slot, reply, partial(_handshake_reply, fixed))
        else:
            message = bytes(sasl.read_request(cursor, fixed)["auth_bytes"])
            self._take(slot, self._session.authenticate(message, now), partial(_login_reply, fixed))

    def _take(self, slot: Slot, reply: session.Reply, encode: Callable[[session.Reply], Frame]) -> None:
        """Do what the session says. While a slot has no answer, nothing else of the connection begins."""
        if reply.work is not None:
            name = f"login of {self.peer}"
            slot.running = self._serving.nursery.start(self._work(slot, reply.work, encode), name)
            return
        answer: Frame = [] if reply.is_silent else encode(reply)
        if reply.close_after_ms is None:
            self._go_on(slot, answer)
            return
        gate = self._serving.gate
        if self._is_over(self._now()):
            gate.strangers.told["expired"] += 1
        elif self._transport is not None:
            gate.refused(self._transport, "failed logins", reply.reason)
            self._tell_failed("" if self._session is None else self._session.asked, reply.reason)
        if reply.close_after_ms == 0:
            slot.answer, slot.last = answer, True
        else:
            slot.running = self._serving.loop.call_later(reply.close_after_ms / 1000, self._end_with, slot, answer)

    def _go_on(self, slot: Slot, answer: Frame) -> None:
        assert self._session is not None
        slot.answer = answer
        principal = self._session.principal
        if principal is not None and self._is_stranger:
            self._serving.gate.strangers.told["logins"] += 1
            self._log_in(principal)
            self._tell_done(self._session.mechanism, principal)
        elif self._session.renewals != self._renewals:
            self._renewals = self._session.renewals
            self._serving.counts.reauthentications += 1

    async def _work(self, slot: Slot, work: Callable[[], Any], encode: Callable[[session.Reply], Frame]) -> None:
        result = await self._protection.in_thread(work)
        assert self._session is not None
        self._take(slot, self._session.resume(result, self._now()), encode)
        if slot.answer is not None:
            self._send_answers()
            self._pump()

    def _end_with(self, slot: Slot, answer: Frame) -> None:
        slot.running, slot.answer, slot.last = None, answer, True
        self._send_answers()


def _handshake_reply(fixed: RequestHeader, reply: session.Reply) -> Frame:
    return sasl.answer_client_handshake(fixed, reply.code, reply.mechanisms)


def _login_reply(fixed: RequestHeader, reply: session.Reply) -> Frame:
    return sasl.answer_login(fixed, reply.code, reply.message, reply.auth_bytes, reply.lifetime_ms)


def _bare_reply(reply: session.Reply) -> Frame:
    return sasl.bare(reply.auth_bytes)
