"""The server side of gRPC: one server per listener, from bytes directly to `Dispatch`.

gRPC knows calls but not connections, so connections are told apart by the peer's address. One `PeerContext` per
connection and caller lives while a call or a stream holds it. It is closed when one of its ordered streams ends.

A call whose session is not known here is refused with UNAUTHENTICATED before it is read. A call that came before is
refused with PERMISSION_DENIED: nobody but an attacker repeats it.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import grpc

from quorumlog.nursery import Nursery, OnCrash
from quorumlog.proof.call_proof import StreamProof
from quorumlog.proof.server_sessions import Replayed, StaleProof
from quorumlog.rpc import prove_method
from quorumlog.rpc.caller import Caller, host_of, read_metadata
from quorumlog.rpc.calls import BY_PATH, Call
from quorumlog.rpc.grpc.options import GrpcOptions
from quorumlog.rpc.grpc.standard import SERVICES, HealthSource, add_health, add_reflection
from quorumlog.rpc.serving.bind import why_not_bound
from quorumlog.rpc.serving.dispatch import Dispatch, PeerContext
from quorumlog.rpc.serving.gate import Gate
from quorumlog.rpc.serving.ordered_answers import OrderedAnswers
from quorumlog.rpc.transport import Address, Listener

_log = logging.getLogger(__name__)

ServicerContext = Any  # grpc.aio.ServicerContext of bytes


class GrpcServer:
    """`transport.Server`."""

    def __init__(self, server: grpc.aio.Server, listener: Listener) -> None:
        self.listener = listener
        self._server = server

    async def close(self) -> None:
        await self._server.stop(grace=None)


async def serve(
    dispatch: Dispatch, gate: Gate, options: GrpcOptions, on_crash: OnCrash, health_source: HealthSource
) -> GrpcServer:
    """Listen at the address of `dispatch.listener`. Raises AddressInUse, or OSError for any other reason."""
    server = grpc.aio.server(options=options.server_arguments())
    service = GrpcService(dispatch, gate, on_crash)
    for name in SERVICES:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, service.handlers(name)),))
    if dispatch.listener.internal:
        handler: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(service.prove)
        proving = {prove_method.NAME: handler}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(prove_method.SERVICE, proving),))
    if options.health:
        add_health(server, health_source)
    if options.reflection:
        add_reflection(server)
    listener = _bind(server, dispatch.listener)
    dispatch.listener = listener
    await server.start()
    return GrpcServer(server, listener)


def _bind(server: grpc.aio.Server, listener: Listener) -> Listener:
    try:
        everywhere = Address(listener.address.host or "::", listener.address.port)  # gRPC takes no empty host
        port = server.add_insecure_port(str(everywhere))
    except RuntimeError:
        port = 0
    if port == 0:
        raise why_not_bound(listener)
    return replace(listener, address=Address(listener.address.host, port))


class GrpcService:
    """The handlers of a gRPC server. Unary handlers run in gRPC's own tasks, those of a stream in a nursery."""

    def __init__(self, dispatch: Dispatch, gate: Gate, on_crash: OnCrash) -> None:
        self._dispatch, self._gate, self._on_crash = dispatch, gate, on_crash
        self._contexts: weakref.WeakValueDictionary[tuple[str, Caller], PeerContext] = weakref.WeakValueDictionary()

    def handlers(self, service: str) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        return {call.method.name: self._handler(call) for call in BY_PATH.values() if call.method.service == service}

    def _handler(self, call: Call) -> grpc.RpcMethodHandler[Any, Any]:
        if call.ordered:
            return grpc.stream_stream_rpc_method_handler(self._ordered(call))
        return grpc.unary_unary_rpc_method_handler(self._unary(call))

    def _unary(self, call: Call) -> Callable[[bytes, ServicerContext], Any]:
        async def handle(data: bytes, servicer_context: ServicerContext) -> bytes:
            context, _ = await self._enter(call, data, servicer_context)
            answer = await self._dispatch.answer(context, call, data)
            assert answer.data is not None, "only ordered calls may have no answer"
            return answer.data

        return handle

    def _ordered(self, call: Call) -> Callable[[Any, ServicerContext], Any]:
        async def handle(_: Any, servicer_context: ServicerContext) -> None:
            context, proof = await self._enter(call, b"", servicer_context)
            nursery = Nursery(self._on_crash)
            answers = OrderedAnswers(self._dispatch, context, call, nursery)
            try:
                nursery.start(_read(servicer_context, proof, answers), f"{call.method.name} reader")
                await _write(servicer_context, answers)
            finally:
                self._forget(context)
                self._dispatch.close(context)
                await nursery.close()

        return handle

    async def prove(self, message: bytes, servicer_context: ServicerContext) -> bytes:
        """One message of a caller's proof."""
        return self._gate.prove(message, servicer_context.peer(), asyncio.get_running_loop().time())

    async def _enter(
        self, call: Call, data: bytes, servicer_context: ServicerContext
    ) -> tuple[PeerContext, StreamProof | None]:
        """Who calls; data: empty for a stream. Ends the call if its proof is stale or was used before."""
        shown = read_metadata(servicer_context.invocation_metadata())
        where, now_s = servicer_context.peer(), asyncio.get_running_loop().time()
        try:
            entry = self._gate.enter(shown, call.method.path, data, where, now_s)
        except StaleProof as error:
            await servicer_context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
        except Replayed as error:
            await servicer_context.abort(grpc.StatusCode.PERMISSION_DENIED, error.message)
        if call.has_own_context:
            return self._dispatch.context(entry.caller, host_of(where)), entry.stream
        return self._context(where, entry.caller), entry.stream

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
