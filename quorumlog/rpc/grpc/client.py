"""The client side of gRPC: one channel to one address, unary calls and ordered streams.

A status such as UNAVAILABLE does not say how far a request got. So a call is given to gRPC only while the channel is
connected: a failure before that is NotDelivered, a failure after it is OutcomeUnknown, whatever status gRPC returns. A
call that the peer's software does not know is answered with UNSUPPORTED_VERSION. gRPC's own retries are off. On an
internal connection each call carries a proof (prover).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.decode_error import DecodeError
from quorumlog.nursery import Nursery, OnCrash
from quorumlog.proof.server_sessions import StaleProof
from quorumlog.rpc import prove_method
from quorumlog.rpc.answering import expects_answer, failure
from quorumlog.rpc.begun_call import begin_by_task
from quorumlog.rpc.caller import Metadata, to_metadata
from quorumlog.rpc.calling.prover import Ask, Prover, TakesNoProof
from quorumlog.rpc.calls import BY_REQUEST, OLDER, Call
from quorumlog.rpc.clear_secret import Pairs
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.grpc.channel import READY, Channel
from quorumlog.rpc.grpc.channel_security import ChannelSecurity
from quorumlog.rpc.grpc.handshake import NoGrpc
from quorumlog.rpc.grpc.options import GrpcOptions
from quorumlog.rpc.grpc.stream import GrpcStream, OfClient, Opened, Rpc
from quorumlog.rpc.serving.logins import EXPIRED
from quorumlog.rpc.transport import Address, Cancel, DoesNotFit, NotDelivered, OnEnded, OutcomeUnknown, RpcError


class GrpcConnection:
    """`transport.Connection`. It belongs to the event loop of its first call."""

    def __init__(
        self,
        address: Address,
        client_id: str,
        options: GrpcOptions,
        on_crash: OnCrash,
        make_prover: Callable[[Ask, Nursery], Prover] | None,
        clear: Pairs | None = None,
        security: ChannelSecurity | None = None,
    ) -> None:
        """make_prover: for an internal connection. clear: shown to a server that takes no proof; None: never.
        security: None: the bytes go in clear."""
        self._clear = clear
        self._shows_clear = False  # the server took no proof; until a call fails, when it may have been upgraded
        self.address = address
        self._client_id, self._options = client_id, options
        self._nursery = Nursery(on_crash)
        self._prover = make_prover(self._ask, self._nursery) if make_prover is not None else None
        self._channel = Channel(address, options, security, self._nursery)
        self._streams: dict[str, GrpcStream] = {}  # by path
        self._older: set[type] = set()  # requests whose stream the peer does not know, while it is connected
        self._closing = Closing()
        self._closed = False

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        assert timeout_ms > 0, "every call has a deadline"
        call = (OLDER if type(request) in self._older else BY_REQUEST)[type(request)]
        try:
            data = call.codec.encode_request(request)
        except ValueError as error:  # protobuf's, for a number that is too large, and Python's, for half a surrogate
            raise DoesNotFit(f"{call.method.name}: {error}") from error
        if self._closed:
            return _failed(NotDelivered(f"{call.method.name}: the connection to {self.address} is closed"))
        if len(data) > self._options.max_message_bytes:
            return _failed(NotDelivered(f"{call.method.name}: {len(data)} bytes are above the limit of a message"))
        if call.ordered:
            return self._stream(call).calls.add(data, expects_answer(request), timeout_ms).wait()
        return self._unary(call, data, timeout_ms)

    def begin(self, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        return begin_by_task(self.call(request, timeout_ms), ended, self._nursery, f"call to {self.address}")

    async def is_grpc(self) -> bool:
        """Connects. False: the peer speaks TLS, and not gRPC. Raises NotAuthenticated, NotDelivered."""
        self._channel.check()
        try:
            ok = await self._channel.connect(self._options.connect_timeout_ms)
        except NoGrpc:
            return False
        if not ok:
            raise NotDelivered(f"{self.address}: no connection")
        return True

    def on_closed(self, callback: Callable[[], None]) -> None:
        self._closing.on_closed(callback)

    def rest(self) -> bool:
        """See `transport.CanRest`. A unary call that is given up leaves nothing behind."""
        if self._closed or self._closing.closed:
            return False
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.give_up("its caller is done")
        return True

    async def close(self) -> None:
        self._closed = True
        for stream in list(self._streams.values()):
            stream.end("the connection was closed")
        if self._prover is not None:
            self._prover.close()
        await self._channel.close()
        await self._nursery.close()

    async def _unary(self, call: Call, data: bytes, timeout_ms: int) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        self._channel.check()
        if self._channel.opened().get_state() is not READY:
            await self._connect(call, timeout_ms)
        try:
            return await self._proven(call, data, deadline)
        except ApiError as refusal:
            return failure(call.method, refusal)

    async def _proven(self, call: Call, data: bytes, deadline: float) -> Any:
        """Raises ApiError if the peer refuses this node, or does not know the call."""
        if self._prover is None:
            return _decoded(call, await self._send(call, data, deadline, None))
        if self._shows_clear:
            return await self._send_clear(call, data, deadline)

        async def send(proof: bytes) -> bytes:
            return await self._send(call, data, deadline, proof)

        try:
            response = _decoded(call, await self._prover.call(call.method.path, data, deadline, send))
            if self._clear is None or response.error_code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                return response
            self._prover.forget_session()  # the node may run older software since, which reads no proof
            return _decoded(call, await self._prover.call(call.method.path, data, deadline, send))
        except TakesNoProof:
            if self._clear is None:
                raise
            return await self._send_clear(call, data, deadline)

    async def _send_clear(self, call: Call, data: bytes, deadline: float) -> Any:
        """To a server of software from before there were proofs."""
        self._shows_clear = False
        response = _decoded(call, await self._send(call, data, deadline, None))
        self._shows_clear = response.error_code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return response

    def _metadata(self, proof: bytes | None) -> Metadata:
        shown = to_metadata(self._client_id, proof)
        return shown if proof is not None or self._clear is None else (*shown, *self._clear)

    async def _send(self, call: Call, data: bytes, deadline: float, proof: bytes | None) -> bytes:
        remaining_s = deadline - asyncio.get_running_loop().time()
        if remaining_s <= 0 or self._closed:
            raise NotDelivered(f"{call.method.name} to {self.address}: not connected in time")
        metadata, generation = self._metadata(proof), self._channel.generation
        if self._channel.is_secure:
            metadata = (*metadata, *await self._channel.authorization())
        start: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.opened().unary_unary(call.method.path)
        rpc = start(data, timeout=remaining_s, metadata=metadata)
        return await self._outcome(call, rpc, generation)

    async def _connect(self, call: Call, timeout_ms: int) -> None:
        try:
            ok = await self._channel.connect(min(timeout_ms, self._options.connect_timeout_ms))
        except asyncio.CancelledError:
            if _wanted():
                raise
            ok = False
        if not ok or self._closed:
            raise NotDelivered(f"{call.method.name} to {self.address}: no connection")
        self._older.clear()  # the peer may run newer software since

    async def _outcome(self, call: Call, rpc: Rpc, generation: int) -> bytes:
        """generation: of the credentials that were shown."""
        name = f"{call.method.name} to {self.address}"
        try:
            data: bytes = await rpc
            self._channel.accepted()
            return data
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAUTHENTICATED and self._prover is not None:
                raise StaleProof(error.details()) from None
            is_refused = error.code() is grpc.StatusCode.UNAUTHENTICATED and error.details() != EXPIRED
            if is_refused and self._channel.is_secure:
                raise self._channel.refused(error.details() or "", generation) from None
            if error.code() is grpc.StatusCode.PERMISSION_DENIED and self._prover is None:
                text = error.details() or "denied"
                raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{self.address}: {text}") from None
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                text = f"{self.address} does not know {call.method.name}: start newer software there first"
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text) from None
            raise OutcomeUnknown(f"{name}: {error.code().name}: {error.details()}") from None
        except asyncio.CancelledError:
            if _wanted():
                raise
            raise OutcomeUnknown(f"{name}: the connection was closed") from None

    async def _ask(self, message: bytes, timeout_ms: int) -> bytes:
        """Send a message of the proof. Whatever goes wrong, no call was sent: raises NotDelivered only."""
        if self._closed:
            raise NotDelivered(f"the connection to {self.address} is closed")
        start: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.opened().unary_unary(prove_method.PATH)
        try:
            return await start(message, timeout=timeout_ms / 1000)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                reason = (
                    "it asks nodes for no proof; this is not the address of an internal listener, or of older software"
                )
                raise TakesNoProof(f"{self.address}: {reason}") from None
            else:
                reason = f"no answer to this node's proof: {error.code().name}: {error.details()}"
            raise NotDelivered(f"{self.address}: {reason}") from None
        except asyncio.CancelledError:
            if _wanted():
                raise
            raise NotDelivered(f"{self.address}: the connection was closed") from None

    def _stream(self, call: Call) -> GrpcStream:
        path = call.method.path
        generation = 0  # of the credentials that were shown
        if path not in self._streams:

            async def open_rpc() -> Opened | None:
                nonlocal generation
                self._channel.check()
                if not await self._channel.connect(self._options.connect_timeout_ms):
                    return None
                opening, proof = None, None
                if self._prover is not None:  # a session that is forgotten would break the stream
                    try:
                        opening, proof = (await self._prover.session(fresh=True)).open_stream(path)
                    except TakesNoProof:
                        if self._clear is None:
                            raise
                generation = self._channel.generation
                metadata = (*self._metadata(opening), *await self._channel.authorization())
                return Opened(self._channel.opened().stream_stream(path)(metadata=metadata), proof)

            def refused(details: str) -> NotDelivered:
                return self._channel.refused(details, generation)

            shows_credentials = self._channel.is_secure and self._prover is None
            of_client = OfClient(self._channel.accepted, refused) if shows_credentials else None
            self._streams[path] = GrpcStream(call, open_rpc, self._nursery, self._on_stream_end, of_client)
        return self._streams[path]

    def _on_stream_end(self, stream: GrpcStream, broke: bool) -> None:
        if stream not in self._streams.values():
            return  # it was given up
        self._streams = {path: other for path, other in self._streams.items() if other is not stream}
        if stream.is_unknown and stream.request in OLDER:
            self._older.add(stream.request)
        elif broke:
            self._closing.close()


def _wanted() -> bool:
    """True if this task is being cancelled. gRPC also raises CancelledError for a call that broke."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _decoded(call: Call, data: bytes) -> Any:
    try:
        return call.codec.decode_response(data)
    except DecodeError as error:
        raise OutcomeUnknown(f"the response cannot be decoded: {error}") from error


async def _failed(error: RpcError) -> Any:
    raise error
