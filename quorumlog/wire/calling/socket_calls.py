"""One socket of the calling side: it is opened, introduces itself (versions, proof or login), then sends requests and
receives their responses in order.

Shell. Calls wait until the introduction is over; after that a call is written before it first suspends. When the socket
breaks, calls that were sent have an unknown outcome, and all others were not delivered. A peer that refuses this node's
proof answers all calls of the socket by that; none was sent. A login that holds for a time is renewed on the same
socket before that time is over (KIP-368), also while there are no calls; calls wait meanwhile.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.scram_client import NotProven, ScramClient
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.rpc import clear_secret
from quorumlog.rpc.answering import expects_answer, failure
from quorumlog.rpc.caller_security import PLAIN_TEXT, CallerSecurity, CredentialsUnavailable, Login
from quorumlog.rpc.calling.timed_call import TimedCall
from quorumlog.rpc.node_security import NodeSecurity
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.transport import (
    ORDERED,
    Address,
    Identity,
    NotAuthenticated,
    NotDelivered,
    NotServed,
    OnEnded,
    OutcomeUnknown,
)
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.tls.refusals import is_of_a_certificate
from quorumlog.turn import Turn
from quorumlog.wire.calling.login import log_in
from quorumlog.wire.calling.login_record import LoginRecord
from quorumlog.wire.calling.refusals import is_early_end, is_refusal, sentence, wants_login
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
LOGIN_TIMEOUT_MS = 10_000  # for TLS and SASL together, beside the connect timeout
SHUTDOWN_TIMEOUT_S = 2.0  # for the peer's end of TLS
RENEW_FROM, RENEW_TO = 0.85, 0.95  # of a login's lifetime, as Kafka's own client
RENEWAL_RETRY_S = 1.0
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
    """identity: proven on internal connections; the peer must prove itself, too. None: nobody proves anything.

    security: of a client; record: what became of its logins at this address.
    """

    address: Address
    identity: Identity | None
    client_id: str
    random_bytes: Callable[[int], bytes]
    log: ProofLog
    security: CallerSecurity = PLAIN_TEXT
    nodes: NodeSecurity | None = None  # of a node; None: it calls in clear
    record: LoginRecord = field(default_factory=LoginRecord)

    @property
    def is_secure(self) -> bool:
        return self.security.tls is not None or self.security.login is not None


class _Exchange:
    """A request of the introduction, or of a renewed login, that waits for its response in its turn."""

    __slots__ = ("response",)

    def __init__(self) -> None:
        self.response: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()


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
        self._waiting: deque[PendingCall | _Exchange] = deque()
        self._next_id = _INTRODUCTION_ID
        self._full = False  # the transport takes no more now
        self._exchanging: _Exchange | None = None
        self._answered = False  # some call
        self._shows_certificate = False  # a node's, which the peer may take for its proof
        self._renewing = False  # calls wait until the login is renewed
        self._held_until_s, self._held_ms = 0.0, 0  # by a quota, as the peer has said (KIP-219)
        self.ready = self.ended = False
        self.denied: NotAuthenticated | None = None
        self._lifetime_ms = 0  # of the login; 0: that of the socket
        self.reached = self.is_lane = False
        self.end_reason = ""
        self.introduced, self._over = asyncio.Event(), asyncio.Event()
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
            if self._held_ms:
                self._tell_held(call)
            self._unsent.append(call)
            self._send()

    async def run(self) -> None:
        """Open the socket and introduce this node. Any failure ends the socket; its calls keep their own deadlines."""
        loop = asyncio.get_running_loop()
        address = self._caller.address
        limit_ms = self._limits.connect_timeout_ms + (LOGIN_TIMEOUT_MS if self._caller.is_secure else 0)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._open()
                await self._introduce()
            await self._keep_logged_in()
        except Malformed as error:
            self.reached = True
            self._end_malformed(error)
        except ApiError as refusal:
            self._caller.log.refuses_us(address, refusal, loop.time())
            self._refuse(refusal)
        except NotProven as error:
            self._caller.log.is_not_proven(address, str(error), loop.time())
            self.end(f"{address} has not proven itself: {error}")
        except NotAuthenticated as refusal:
            self._deny(refusal)
        except CredentialsUnavailable as error:
            self.end(f"there is nothing to log in with at {address}: {error}")
        except TimeoutError:
            self.end(self._too_late(limit_ms))
        except OSError as error:
            self._end_broken(error)

    async def _open(self) -> None:
        nodes, tls = self._caller.nodes, self._caller.security.tls
        if nodes is not None:
            await self._open_to_node(nodes)
        elif tls is None:
            await self._open_plain()
        else:
            await self._open_tls(tls.newest().context)

    async def _open_to_node(self, nodes: NodeSecurity) -> None:
        """Raises NotAuthenticated for a server that is no node of this cluster."""
        own = self._caller.identity
        assert own is not None, "nodes call with their identity"
        try:
            await self._open_tls(nodes.context())
        except (ssl.SSLError, ConnectionResetError) as error:
            if not nodes.plain_too or (isinstance(error, ssl.SSLError) and is_of_a_certificate(error)):
                raise
            await self._open_plain()
            return
        assert self._transport is not None, "it was made"
        der = self._transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        nodes.check(self._caller.address, own, der)
        self._shows_certificate = nodes.auth.has_certificates

    async def _open_plain(self) -> None:
        await self._connect()

    async def _open_tls(self, tls: ssl.SSLContext) -> None:
        await self._connect(
            ssl=tls,
            server_hostname=self._caller.address.host,
            ssl_handshake_timeout=LOGIN_TIMEOUT_MS / 1000,
            ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        )

    async def _connect(self, **tls: Any) -> None:
        address = self._caller.address
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, address.host, address.port, **tls)
        except OSError:  # among them errors of TLS, some of which are a ValueError, too
            raise
        except ValueError as error:
            raise OSError(f"no host has such a name: {error}") from None

    def _too_late(self, limit_ms: int) -> str:
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
        self._over.set()
        if self._transport is not None:
            self._transport.abort()
        waiting, unsent = [*self._waiting], [*self._unsent]
        self._waiting.clear()
        self._unsent.clear()
        for one in waiting:
            if isinstance(one, PendingCall):
                one.fail_by(f"{self._caller.address}: {reason}")
            elif not one.response.done():
                one.response.set_exception(ConnectionResetError(reason))
        for call in unsent:
            if self.denied is not None:
                call.fail(NotAuthenticated(str(self.denied)))
            else:
                call.fail_by(f"{self._caller.address}: {reason}")
        self._on_end(self, self.ready)

    def _deny(self, refusal: NotAuthenticated) -> None:
        """Nobody logs in here: end, and answer the calls that were not sent by that."""
        if self.ended:
            return
        self.reached, self.denied = True, refusal
        self._caller.record.deny(refusal, asyncio.get_running_loop().time())
        self.end(str(refusal))

    def _end_malformed(self, error: Malformed) -> None:
        address, text = self._caller.address, str(error)
        if not self.is_lane and self._caller.security.tls is None and "a TLS alert" in text:
            wanted = "SSL or SASL_SSL" if self._caller.security.login is None else "SASL_SSL"
            self._deny(
                NotAuthenticated(f"{address} speaks TLS, and this client does not: set security_protocol={wanted}")
            )
        elif not self.is_lane and self._caller.is_secure:
            self._deny(NotAuthenticated(f"{address} does not speak Kafka's protocol: {text}: is it a broker?"))
        else:
            self.end(f"{address} does not speak Kafka's protocol: {text}")

    def _end_broken(self, error: Exception | None) -> None:
        """error: None: the peer closed. Before the login is over, that may say that it refuses this client."""
        address, security = self._caller.address, self._caller.security
        if self._exchanging is not None and self._exchanging.response.done() and not self.ended:
            asyncio.get_running_loop().call_soon(self._end_broken, error)  # its last answer is read first
            return
        if not self.ended and not self.ready and self._caller.is_secure:
            if error is not None and is_refusal(error):
                self._deny(NotAuthenticated(sentence(address, security, error, self.is_lane)))
                return
            if (error is None or is_early_end(error)) and self._caller.record.ended_early():
                self._deny(NotAuthenticated(sentence(address, security, error, self.is_lane)))
                return
        if self._is_unanswered_end(error) and self._caller.record.ended_unanswered():
            self._deny(NotAuthenticated(wants_login(address, security)))
        elif error is None:
            self.end("the peer closed the connection")
        elif self._transport is None:
            strerror = error.strerror if isinstance(error, OSError) else None
            self.end(f"no connection to {address}: {strerror or error}")
        else:
            self.end(f"the connection broke: {error}")

    def _is_unanswered_end(self, error: Exception | None) -> bool:
        """The peer closed at the first request, which was small: one that is too large has the same end."""
        anonymous = self._caller.security.login is None and self._caller.identity is None
        if not anonymous or self.ended or not self.ready or self._answered or not self._waiting:
            return False
        small = all(isinstance(one, PendingCall) and type(one.request) not in ORDERED for one in self._waiting)
        return small and (error is None or is_early_end(error))

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
        if self._caller.security.tls is not None:
            self.connection_lost(None)  # asyncio would wait for the end of TLS first
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.reached = self.reached or not self.ended  # it hung up; it may speak another protocol
        self._end_broken(exc)

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
        elif self._caller.security.login is not None:
            self._lifetime_ms = await self._log_in(self._caller.security.login)
            self.grpc_address = await self._ask_for_grpc()
        if not self.ended:
            self.ready = self.reached = True
            self._caller.record.succeeded()
            self.introduced.set()
            self._send()

    async def _ask_for_grpc(self) -> Address | None:
        """Where a client that has logged in may go on by gRPC: strangers are not told. Raises Malformed."""
        security = self._caller.security
        if security.tls is None or security.why_no_grpc:
            return None
        asked = versions.ask(_INTRODUCTION_ID, self._caller.client_id)
        return versions.read_answer(await self._exchange(asked))[1]

    async def _prove(self, own: Identity) -> None:
        """Both sides prove themselves. Raises ApiError if the peer refuses, NotProven, Malformed."""
        if sasl.HANDSHAKE_KEY not in self.versions:
            self.end("it asks nodes for no proof; this is not the address of an internal listener")
            return
        nodes = self._caller.nodes
        if nodes is not None and nodes.auth is NodeAuth.MTLS:
            await self._show_name(own)
            return
        scram = ScramClient(own.keys, own.peer, new_nonce(self._caller.random_bytes(NONCE_BYTES)))
        try:
            sasl.read_answer(sasl.HANDSHAKE_KEY, await self._exchange(sasl.ask_handshake(_INTRODUCTION_ID)))
        except ApiError as refusal:
            if refusal.code is not ErrorCode.UNSUPPORTED_SASL_MECHANISM:
                raise
            if self._shows_certificate:
                await self._show_name(own)
            elif own.secret_in_clear:
                await self._show_secret(own)
            else:
                raise
            return
        answer = await self._authenticate(scram.first())
        scram.verify(await self._authenticate(scram.final(answer)))

    async def _show_name(self, own: Identity) -> None:
        """Where the certificate of this connection is the proof. Raises ApiError, Malformed."""
        ask = sasl.ask_handshake(_INTRODUCTION_ID, sasl.EXTERNAL)
        sasl.read_answer(sasl.HANDSHAKE_KEY, await self._exchange(ask))
        await self._authenticate(sasl.external(own.peer))

    async def _show_secret(self, own: Identity) -> None:
        """To a peer of software from before there were proofs. Raises ApiError, Malformed."""
        ask = sasl.ask_handshake(_INTRODUCTION_ID, clear_secret.MECHANISM)
        sasl.read_answer(sasl.HANDSHAKE_KEY, await self._exchange(ask))
        await self._authenticate(clear_secret.to_plain(own))

    async def _authenticate(self, message: bytes) -> bytes:
        frame = await self._exchange(sasl.ask_authenticate(_INTRODUCTION_ID, message))
        return bytes(sasl.read_answer(sasl.AUTHENTICATE_KEY, frame)["auth_bytes"])

    async def _log_in(self, login: Login) -> int:
        return await log_in(login, self._caller.address, self.versions, self._exchange)

    async def _keep_logged_in(self) -> None:
        """Until the socket ends. Raises as `_introduce`."""
        login = self._caller.security.login
        while login is not None and self._lifetime_ms and not self.ended:
            began_s, lifetime_s = asyncio.get_running_loop().time(), self._lifetime_ms / 1000
            share = RENEW_FROM + (RENEW_TO - RENEW_FROM) * self._caller.random_bytes(1)[0] / 255
            await self._sleep(share * lifetime_s)
            await self._renew(login, began_s + lifetime_s)

    async def _renew(self, login: Login, expires_s: float) -> None:
        """Without credentials it is tried again until the peer ends the login."""
        loop = asyncio.get_running_loop()
        while not self.ended:
            self._renewing = True
            try:
                async with asyncio.timeout(LOGIN_TIMEOUT_MS / 1000):
                    self._lifetime_ms = await self._log_in(login)
                return
            except CredentialsUnavailable:
                if loop.time() >= expires_s:
                    raise
            finally:
                self._renewing = False
                self._send()
            await self._sleep(RENEWAL_RETRY_S)

    async def _sleep(self, seconds: float) -> None:
        """Shorter if the socket ends."""
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            pass

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
        self._exchanging = exchange = _Exchange()
        self._waiting.append(exchange)
        send(self._transport, frame)
        try:
            return await exchange.response
        finally:
            self._exchanging = None

    # --- calls

    def _send(self) -> None:
        while self._unsent and self.ready and not self._full and not self._renewing and not self.ended:
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
        if not self._waiting:
            self._protocol_error("it sent a response without a request")
            return
        call = self._waiting.popleft()
        if isinstance(call, _Exchange):
            if not call.response.done():
                call.response.set_result(frame)
            return
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if not self._answered:
            self._answered = True
            self._caller.record.answered()
        if correlation_id != call.correlation_id:
            call.fail(OutcomeUnknown(f"the response is to call {correlation_id}, not {call.correlation_id}"))
            self._protocol_error("its responses are out of order")
            return
        if call.is_over:
            return  # it has timed out, or was cancelled
        assert call.wire_request is not None
        try:
            response = decode_response(call.wire_request, frame)
        except Malformed as error:
            call.fail(OutcomeUnknown(f"the response cannot be read: {error}"))
            return
        if getattr(response, "throttle_time_ms", 0) > 0:
            self._hold(response.throttle_time_ms)
        call.succeed(response)

    def _hold(self, held_ms: int) -> None:
        """The peer reads no further request for so long. Nothing waits here; a call that ends meanwhile says why."""
        self._held_ms = held_ms
        self._held_until_s = asyncio.get_running_loop().time() + held_ms / 1000
        for one in (*self._waiting, *self._unsent):
            if isinstance(one, PendingCall):
                self._tell_held(one)

    def _tell_held(self, call: PendingCall) -> None:
        if asyncio.get_running_loop().time() >= self._held_until_s:
            self._held_ms = 0
        else:
            call.waits_for = (
                f": the broker holds this client back for {self._held_ms} ms (a quota: quorumlog quota top)"
            )

    def _protocol_error(self, reason: str) -> None:
        first = self._waiting[0] if self._waiting else None
        if isinstance(first, _Exchange) and not first.response.done():
            first.response.set_exception(Malformed(reason))
        else:
            self.end(reason)
