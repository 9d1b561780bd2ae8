"""The server side of gRPC: one server per listener, from bytes directly to `Dispatch`.

gRPC knows calls but not connections, so connections are told apart by the peer's address. One `PeerContext` per
connection and caller lives while a call or a stream holds it. It is closed when one of its ordered streams ends.

A call whose session is not known here is refused with UNAUTHENTICATED before it is read. A call that came before is
refused with PERMISSION_DENIED: nobody but an attacker repeats it.

A client whose certificate or credentials are not taken is told UNAUTHENTICATED and one text, after a while. When its
credential expires, or its certificate is denied, its streams end, and what a long poll has found by then is not sent.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import grpc

from quorumlog.nursery import Nursery, OnCrash
from quorumlog.proof.call_proof import StreamProof
from quorumlog.proof.server_sessions import Replayed, StaleProof
from quorumlog.rpc import prove_method
from quorumlog.rpc.caller import Caller, host_of, read_metadata
from quorumlog.rpc.calls import BY_PATH, Call
from quorumlog.rpc.grpc.healthy import SERVICES, HealthSource
from quorumlog.rpc.grpc.options import GrpcOptions
from quorumlog.rpc.grpc.server_security import (
    DENIED_POLL_S,
    IN_CLEAR,
    Admission,
    Admitted,
    ServerSecurity,
    server_credentials,
)
from quorumlog.rpc.grpc.splitter import Splitter
from quorumlog.rpc.serving.bind import why_not_bound
from quorumlog.rpc.serving.dispatch import Dispatch, PeerContext
from quorumlog.rpc.serving.gate import Gate
from quorumlog.rpc.serving.logins import AUTHENTICATION_FAILED, EXPIRED, NotLoggedIn, NotOpen
from quorumlog.rpc.serving.ordered_answers import OrderedAnswers
from quorumlog.rpc.transport import Address, Listener
from quorumlog.security.principal import ANONYMOUS, Principal

_log = logging.getLogger(__name__)

MayDescribe = Callable[[Principal, str], bool]  # who, and from which host


def anybody(_principal: Principal, _host: str) -> bool:
    return True


ServicerContext = Any  # grpc.aio.ServicerContext of bytes


class GrpcServer:
    """`transport.Server`."""

    def __init__(
        self, server: grpc.aio.Server, listener: Listener, admission: Admission, splitter: Splitter | None
    ) -> None:
        self.listener = listener
        self._server, self._admission, self._splitter = server, admission, splitter

    async def close(self) -> None:
        if self._splitter is not None:
            await self._splitter.close()
        await self._server.stop(grace=None)
        self._admission.close()


async def serve(
    dispatch: Dispatch,
    gate: Gate,
    options: GrpcOptions,
    on_crash: OnCrash,
    health_source: HealthSource,
    security: ServerSecurity | None = None,
    may_describe: MayDescribe = anybody,
) -> GrpcServer:
    """Listen at the address of `dispatch.listener`. Raises AddressInUse, or OSError for any other reason; BadTls for
    what gRPC cannot do. security: where the listener's protocol has TLS. An internal listener with it also serves nodes
    that come in clear as long as the gate takes proofs beside certificates. may_describe: who may read the schema by
    reflection."""
    from quorumlog.rpc.grpc.standard import add_health, add_reflection  # a client has no use for their modules

    admission = Admission(dispatch.listener, security)
    server = grpc.aio.server(options=options.server_arguments(internal=dispatch.listener.internal))
    service = GrpcService(dispatch, gate, on_crash, admission)
    splits = security is not None and gate.takes_both
    for name in SERVICES:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, service.handlers(name)),))
    if gate.takes_proofs:
        handler: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(service.prove)
        proving = {prove_method.NAME: handler}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(prove_method.SERVICE, proving),))
    if options.health:
        add_health(server, health_source)
    if options.reflection and (security is None or not dispatch.listener.internal):  # nodes need none
        add_reflection(server, partial(service.check_reflection, may_describe=may_describe))
    listener, splitter = dispatch.listener, None
    if splits:
        own = replace(listener, address=Address("127.0.0.1", 0))
        splitter = Splitter(_bind(server, own, security), _bind(server, own, None), on_crash)
        service.caller = splitter.caller
        try:
            port = await splitter.listen(listener.address)
        except OSError:
            raise why_not_bound(listener) from None
    else:
        port = _bind(server, listener, security)
    dispatch.listener = replace(listener, address=Address(listener.address.host, port))
    await server.start()
    return GrpcServer(server, dispatch.listener, admission, splitter)


def _bind(server: grpc.aio.Server, listener: Listener, security: ServerSecurity | None) -> int:
    """The port."""
    try:
        everywhere = str(Address(listener.address.host or "::", listener.address.port))  # gRPC takes no empty host
        if security is None:
            port = server.add_insecure_port(everywhere)
        else:
            port = server.add_secure_port(everywhere, server_credentials(security))
    except RuntimeError:
        port = 0
    if port == 0:
        raise why_not_bound(listener)
    return port


class GrpcService:
    """The handlers of a gRPC server. Unary handlers run in gRPC's own tasks, those of a stream in a nursery."""

    def __init__(self, dispatch: Dispatch, gate: Gate, on_crash: OnCrash, admission: Admission) -> None:
        self._dispatch, self._gate, self._on_crash, self._admission = dispatch, gate, on_crash, admission
        self.caller: Callable[[str], str] = str  # who is behind what gRPC takes for a peer
        self._contexts: weakref.WeakValueDictionary[tuple[str, Caller], PeerContext] = weakref.WeakValueDictionary()

    def handlers(self, service: str) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        return {call.method.name: self._handler(call) for call in BY_PATH.values() if call.method.service == service}

    def _handler(self, call: Call) -> grpc.RpcMethodHandler[Any, Any]:
        if call.ordered:
            return grpc.stream_stream_rpc_method_handler(self._ordered(call))
        return grpc.unary_unary_rpc_method_handler(self._unary(call))

    def _unary(self, call: Call) -> Callable[[bytes, ServicerContext], Any]:
        async def handle(data: bytes, servicer_context: ServicerContext) -> bytes:
            context, _, admitted = await self._enter(call, data, servicer_context)
            answer = await self._dispatch.answer(context, call, data)
            assert answer.data is not None, "only ordered calls may have no answer"
            if context.refusal is None and self._admission.is_over(admitted):  # a node that is refused hears why
                await servicer_context.abort(grpc.StatusCode.UNAUTHENTICATED, EXPIRED)
            return answer.data

        return handle

    def _ordered(self, call: Call) -> Callable[[Any, ServicerContext], Any]:
        async def handle(_: Any, servicer_context: ServicerContext) -> None:
            context, proof, admitted = await self._enter(call, b"", servicer_context)
            ends_s = self._admission.ends_s(admitted.who, asyncio.get_running_loop().time())
            nursery = Nursery(self._on_crash)
            answers = OrderedAnswers(self._dispatch, context, call, nursery)
            try:
                async with asyncio.timeout_at(ends_s) as lifetime:
                    nursery.start(_read(servicer_context, proof, answers), f"{call.method.name} reader")
                    if admitted.certificate is not None:
                        nursery.start(self._end_denied(lifetime, admitted), f"{call.method.name} certificate")
                    await _write(servicer_context, answers)
            except TimeoutError:
                if not lifetime.expired():
                    raise
            finally:
                self._forget(context)
                self._dispatch.close(context)
                await nursery.close()
            if lifetime.expired():
                await servicer_context.abort(grpc.StatusCode.UNAUTHENTICATED, EXPIRED)

        return handle

    async def _end_denied(self, lifetime: asyncio.Timeout, admitted: Admitted) -> None:
        while True:
            await asyncio.sleep(DENIED_POLL_S)
            if self._admission.is_denied(admitted.certificate):
                break
        lifetime.reschedule(asyncio.get_running_loop().time())

    async def check_reflection(self, servicer_context: ServicerContext, may_describe: MayDescribe) -> None:
        """Ends the call of one who does not show who it is, or may not describe the cluster."""
        who = ANONYMOUS
        if self._admission.security is not None:
            who = (await self._admit(servicer_context, servicer_context.invocation_metadata())).who.principal
        if not may_describe(who, host_of(self.caller(servicer_context.peer()))):
            await servicer_context.abort(
                grpc.StatusCode.PERMISSION_DENIED, "not authorized: this needs Cluster Describe"
            )

    async def prove(self, message: bytes, servicer_context: ServicerContext) -> bytes:
        """One message of a caller's proof."""
        return self._gate.prove(message, self.caller(servicer_context.peer()), asyncio.get_running_loop().time())

    async def _enter(
        self, call: Call, data: bytes, servicer_context: ServicerContext
    ) -> tuple[PeerContext, StreamProof | None, Admitted]:
        """Who calls; data: empty for a stream. Ends the call if its proof is stale or was used before, or if a client
        does not show who it is."""
        metadata = servicer_context.invocation_metadata()
        is_secure = self._admission.security is not None
        admitted = await self._admit(servicer_context, metadata) if is_secure else IN_CLEAR
        who = admitted.who
        shown = read_metadata(metadata)
        where, now_s = self.caller(servicer_context.peer()), asyncio.get_running_loop().time()
        try:
            entry = self._gate.enter(shown, call.method.path, data, where, now_s, admitted.certificate)
        except StaleProof as error:
            await servicer_context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
        except Replayed as error:
            await servicer_context.abort(grpc.StatusCode.PERMISSION_DENIED, error.message)
        caller = entry.caller if who.principal is ANONYMOUS else replace(entry.caller, principal=who.principal)
        if call.has_own_context:
            return self._dispatch.context(caller, host_of(where)), entry.stream, admitted
        return self._context(where, caller), entry.stream, admitted

    async def _admit(self, servicer_context: ServicerContext, metadata: Any) -> Admitted:
        """Ends the call of a client that does not show who it is."""
        try:
            return await self._admission.admit(servicer_context, metadata)
        except NotOpen as error:
            await servicer_context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise AssertionError("abort raises") from None
        except NotLoggedIn as error:
            where, now_s = self.caller(servicer_context.peer()), asyncio.get_running_loop().time()
            self._admission.refused(where, metadata, str(error), now_s)
            await asyncio.sleep(self._admission.delay_ms / 1000)
            await servicer_context.abort(grpc.StatusCode.UNAUTHENTICATED, AUTHENTICATION_FAILED)
            raise AssertionError("abort raises") from None

    def _context(self, where: str, caller: Caller) -> PeerContext:
        context = self._contexts.get((where, caller))
        if context is None:
            context = self._contexts[where, caller] = self._dispatch.context(caller, host_of(where))
        return context

    def _forget(self, context: PeerContext) -> None:
        """Later calls on this connection get a new context, which is open."""
        for key, other in list(self._contexts.items()):
            if other is context:
                del self._contexts[key]


async def _read(servicer_context: ServicerContext, proof: StreamProof | None, answers: OrderedAnswers) -> None:
    """proof: of the stream's messages; the first that is not the next one is the last that is read."""
    try:
        while True:
            await answers.room()
            data = await servicer_context.read()
            if data is grpc.aio.EOF:
                break
            message = data if proof is None else proof.open(data)
            if message is None:
                _log.warning(
                    "a stream of %s ends: a message is not the one that its node sent", servicer_context.peer()
                )
                break
            await answers.room()  # it may have been held back meanwhile
            answers.accept(message)
    except (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError):
        pass  # the peer is gone; gRPC cancels the stream's handler
    answers.end()


async def _write(servicer_context: ServicerContext, answers: OrderedAnswers) -> None:
    while True:
        answer = await answers.next()
        if answer is None:
            return
        if answer.data is not None:
            await servicer_context.write(answer.data)
        if answer.last:
            return
