"""From the bytes of a request to the bytes of its response, the same for every transport.

Errors are answered in the response type of the request. An ApiError is answered with its code, bytes that
are not a request with INVALID_REQUEST. Any other exception is answered with UNKNOWN_SERVER_ERROR; its details go to
`on_crash` and never to the peer. If a request without a response (acks=0) fails, its stream ends, as Kafka closes the
connection: there is no other way to report it.

A fetch by gRPC is answered with no more than MAX_FETCHED_BYTES: protobuf and gRPC copy an answer several times, all in
one turn of the loop, and 25 MB took it 32 to 55 ms. The data lane copies nothing and sends in pieces, so it needs no
such limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages import groups, joint, transactions
from quorumlog.messages.admin import ListGroupsRequest
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.decode_error import DecodeError
from quorumlog.messages.fetch import FetchChunkRequest, FetchRequest
from quorumlog.messages.method import Method
from quorumlog.messages.produce import ProduceRequest
from quorumlog.messages.services import METHODS
from quorumlog.nursery import OnCrash
from quorumlog.rpc.answering import expects_answer, failure
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.serving.access import refuse_caller, refuse_request
from quorumlog.rpc.serving.request_parts import RequestBook, Stepped, Timing
from quorumlog.rpc.serving.request_time import RequestTime, Timed, Watch
from quorumlog.rpc.transport import Handler, Identity, Listener
from quorumlog.security.host import is_loopback
from quorumlog.security.principal import node_principal
from quorumlog.turn import in_turns

if TYPE_CHECKING:
    from quorumlog.rpc.calls import Call  # loads protobuf, which a client by the lane does without

MAX_FETCHED_BYTES = 4 * 1024 * 1024  # of records; the first batch is sent even if it is larger


def bounded(request: Any) -> Any:
    """The request as it is carried out: a fetch asks for no more than MAX_FETCHED_BYTES."""
    if type(request) is FetchRequest and request.max_bytes > MAX_FETCHED_BYTES:
        return replace(request, max_bytes=MAX_FETCHED_BYTES)
    if type(request) is FetchChunkRequest and request.fetch is not None:
        return replace(request, fetch=bounded(request.fetch))
    return request


SLICED_BYTES = 32 * 1024  # from here on a request is read in slices: those of about 1,500 partitions
MODULES = tuple(module.__name__ for module in (groups, joint, transactions))
SLICED = frozenset(
    method.request for method in METHODS if method.request.__module__ in MODULES or method.request is ListGroupsRequest
)
"""Requests whose messages may have 100,000 elements. None is ordered."""

MAX_HELD_MS = 1_000
"""A client that gives up before its answer comes would ask again for what it has paid for, and never get it. So the
answer of a call that is no stream is held back for a little only. The next fetch is put off, up to its deadline."""

FAILED = "the server failed; see its log"


class Answer(NamedTuple):
    """data: None: nothing is sent. last: the stream of the request must end after this answer. throttle_ms: for how
    long no more of the stream is read."""

    data: bytes | None
    last: bool = False
    throttle_ms: int = 0


class Reply(NamedTuple):
    """An answer before it is encoded. message: None: nothing is sent. last: as in `Answer`. throttle_ms: for how long
    the client is to be held back by its quota."""

    message: Any
    last: bool = False
    throttle_ms: int = 0


class PeerContext(Closing):
    """`transport.Context` for every transport: one connection, as its handlers see it."""

    def __init__(self, listener: Listener, caller: Caller, client_host: str = "", number: int = 0) -> None:
        """number: of the connection at its listener."""
        super().__init__()
        self.number = number
        self.correlation = 0  # of the request that begins
        self.listener = listener
        self.client_id = caller.client_id
        self.client_host = client_host
        self.refusal = refuse_caller(listener, caller)
        self.peer = caller.peer if listener.internal else None
        self.principal = caller.principal if self.peer is None else node_principal(self.peer.node_id)

    @property
    def request_id(self) -> str:
        """CONNECTION:CORRELATION of the request that begins."""
        return f"{self.number}:{self.correlation}"

    @property
    def private(self) -> bool:
        return self.listener.security.tls or is_loopback(self.client_host)


class Dispatch:
    """Serves one listener. `answer` raises nothing but cancellation. identity: this node's; callers prove themselves
    by it at an internal listener. time: what requests take of the loop; None: nobody has a quota of that. book: how
    long requests take; None: nobody asks."""

    def __init__(
        self,
        *,
        listener: Listener,
        identity: Identity | None,
        handler: Handler,
        on_crash: OnCrash,
        time: RequestTime | None = None,
        book: RequestBook | None = None,
    ) -> None:
        assert identity is not None or not listener.internal, f"an internal listener needs an identity: {listener}"
        self.listener, self.identity = listener, identity
        self._handler, self._on_crash, self._time = handler, on_crash, time
        self.book = book
        self._numbers = count(1)

    def watch(self) -> Watch | None:
        """For one request, from now on; None: nothing is measured."""
        return None if self._time is None else self._time.watch()

    def written(self, context: PeerContext, request: Any, watch: Watch) -> None:
        """The answer to a request that the watch measures was encoded."""
        assert self._time is not None
        self._time.rest(context, request, watch)

    def context(self, caller: Caller, client_host: str = "", number: int | None = None) -> PeerContext:
        """number: of a connection that has one already: its caller has shown who it is."""
        return PeerContext(self.listener, caller, client_host, next(self._numbers) if number is None else number)

    def wait_ms(self, context: PeerContext, call: Call) -> int:
        """For how long nothing of a new stream is read: its client may have opened it because an older one is held
        back. A fetch waits for its bucket by itself."""
        if self._time is None or call.method.request is not ProduceRequest:
            return 0
        return self._time.produce_wait_ms(context)

    def close(self, context: PeerContext) -> None:
        """The connection is gone: run the callbacks of its handlers."""
        try:
            context.close()
        except Exception as error:
            self._on_crash("a callback of on_closed", error)

    def answer(self, context: PeerContext, call: Call, data: Buffer) -> Coroutine[Any, Any, Answer]:
        """The handler runs to its first suspension before this coroutine first suspends, unless the request is one of
        SLICED, and large."""
        watch, book = self.watch(), self.book
        timing = None if book is None else book.begin(call.method.name, len(data))
        answering: Coroutine[Any, Any, Answer] = self._answer(context, call, data, watch, timing)
        if book is not None and timing is not None:
            answering = Stepped(answering, timing, book, context)
        return answering if watch is None else Timed(answering, watch)

    async def _answer(
        self, context: PeerContext, call: Call, data: Buffer, watch: Watch | None, timing: Timing | None
    ) -> Answer:
        if context.refusal is not None:
            return _failure(call, context.refusal, last=True)
        try:
            if call.method.request in SLICED and len(data) >= SLICED_BYTES:
                request = await _decoded_in_turns(call, data)
            else:
                request = call.codec.decode_request(data)  # type: ignore[arg-type]  # decoders take any buffer
        except DecodeError as error:
            return _failure(call, ApiError(ErrorCode.INVALID_REQUEST, str(error)), last=True)
        context.correlation += 1  # calls of gRPC have no number of their own
        if timing is not None:
            timing.correlation = context.correlation
            timing.asks(request)
        reply = await self.reply(context, call.method, bounded(request), watch)
        # Who takes throttling may not ask before that.
        throttle_ms = 0 if getattr(request, "takes_throttling", False) else reply.throttle_ms
        if throttle_ms and not call.ordered:
            held_s = min(throttle_ms, MAX_HELD_MS) / 1000
            await asyncio.sleep(held_s)
            throttle_ms = 0
            if timing is not None:
                timing.held_back(held_s)
        elif throttle_ms and timing is not None:
            timing.throttle_s = throttle_ms / 1000
        encoded = None if reply.message is None else await self._encoded(call, reply.message)
        if timing is not None:
            self._ended(timing, reply, context)
        if encoded is None:
            return Answer(None, reply.last, throttle_ms)
        if watch is not None:
            self.written(context, request, watch)
        return Answer(encoded, reply.last, throttle_ms)

    async def _encoded(self, call: Call, message: Any) -> bytes:
        try:
            if call.method.request in SLICED:
                return await _encoded_in_turns(call, message)
            return call.codec.encode_response(message)
        except Exception as error:
            self._on_crash(f"answer of {call.method.name}", error)
            return call.codec.encode_response(failure(call.method, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, FAILED)))

    def _ended(self, timing: Timing, reply: Reply, context: PeerContext) -> None:
        assert self.book is not None
        now_s = self.book.now_s()
        timing.replied(reply.message, now_s)
        self.book.end(timing, context, now_s)

    def reply(
        self, context: PeerContext, method: Method, request: Any, watch: Watch | None = None
    ) -> Coroutine[Any, Any, Reply]:
        """`answer` for a transport that decodes requests itself. Starts the handler as `answer` does."""
        replying = self._reply(context, method, request)
        return replying if watch is None else self._held(context, request, replying, watch)

    async def _held(
        self, context: PeerContext, request: Any, replying: Coroutine[Any, Any, Reply], watch: Watch
    ) -> Reply:
        assert self._time is not None
        return self._time.held(context, request, await replying, watch)

    async def _reply(self, context: PeerContext, method: Method, request: Any) -> Reply:
        if context.refusal is not None:
            return Reply(failure(method, context.refusal), last=True)
        answered = expects_answer(request)
        try:
            response = await self._handle(context, method, request, answered)
            throttle_ms = getattr(response, "throttle_time_ms", 0)
            return Reply(response if answered else None, throttle_ms=throttle_ms)
        except ApiError as error:
            return Reply(failure(method, error)) if answered else Reply(None, last=True)
        except Exception as error:
            self._on_crash(f"handler of {method.name}", error)
            unknown = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, FAILED)
            return Reply(failure(method, unknown)) if answered else Reply(None, last=True)

    async def _handle(self, context: PeerContext, method: Method, request: Any, answered: bool) -> Any:
        refusal = refuse_request(self.listener, method, request)
        if refusal is not None:
            raise refusal
        response = await self._handler(context, request)
        is_right = type(response) is method.response or not answered
        assert is_right, f"{method.name} answered with {type(response).__name__}"
        return response


def _failure(call: Call, error: ApiError, last: bool = False) -> Answer:
    return Answer(call.codec.encode_response(failure(call.method, error)), last)


async def _decoded_in_turns(call: Call, data: Buffer) -> Any:
    """Raises DecodeError."""
    from quorumlog.rpc.convert.sliced import decode_sliced  # a node loads it when it is first needed

    return await in_turns(decode_sliced(call.method.request, data))


async def _encoded_in_turns(call: Call, message: Any) -> bytes:
    from quorumlog.rpc.convert.sliced import encode_sliced, is_long

    return await in_turns(encode_sliced(message)) if is_long(message) else call.codec.encode_response(message)
