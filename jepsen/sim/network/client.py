"""The client side of the simulated transport: `transport.Connection` over sessions.

On an internal connection `Prover`, the production class, proves this node and signs each call, as over gRPC. As there,
a call that the peer's software does not know was not sent, and goes by the older call until this connects again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from jepsen.sim.network.known_user import known_as
from jepsen.sim.network.message import CLIENT, Message, Phase
from jepsen.sim.network.network import Network
from jepsen.sim.network.session import Session
from jepsen.sim.time.loop import SimLoop
from quorumlog.errors import ApiError
from quorumlog.messages.decode_error import DecodeError
from quorumlog.nursery import Nursery, OnCrash
from quorumlog.proof.call_proof import StreamProof
from quorumlog.proof.server_sessions import StaleProof
from quorumlog.rpc import prove_method
from quorumlog.rpc.answering import expects_answer, failure
from quorumlog.rpc.begun_call import begin_by_task
from quorumlog.rpc.caller import to_metadata
from quorumlog.rpc.calling.ordered_calls import OrderedCalls
from quorumlog.rpc.calling.prover import Ask, Prover
from quorumlog.rpc.calls import BY_PATH, BY_REQUEST, OLDER, Call
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.transport import (
    CONNECT_TIMEOUT_MS_DEFAULT,
    MAX_MESSAGE_BYTES_DEFAULT,
    Address,
    Cancel,
    NotDelivered,
    OnEnded,
    OutcomeUnknown,
    RpcError,
)


class _Stream:
    """The ordered calls of one method. proof: of its messages, once it is open on an internal connection.

    opening: what its first message carries. is_open: its calls may be sent.
    """

    def __init__(self, call: Call) -> None:
        self.calls = OrderedCalls(call)
        self.is_open = self.is_opening = False
        self.opening: bytes | None = None
        self.proof: StreamProof | None = None


class SimConnection:
    """Connects on the first call. After its session broke, the next call connects again.

    make_prover: for an internal connection. user: who it is at a client listener; "": nobody that is known.
    """

    def __init__(
        self,
        network: Network,
        host: str,
        loop: SimLoop,
        address: Address,
        client_id: str,
        on_crash: OnCrash,
        make_prover: Callable[[Ask, Nursery], Prover] | None,
        user: str = "",
    ) -> None:
        self.address, self._user = address, user
        self._network, self._host, self._loop, self._client_id = network, host, loop, client_id
        self._nursery = Nursery(on_crash)
        self._prover = make_prover(self._ask, self._nursery) if make_prover is not None else None
        self._session: Session | None = None
        self._connecting: asyncio.Future[None] | None = None  # fails with NotDelivered
        self._streams: dict[str, _Stream] = {}  # by path; of the current session or of the one being opened
        self._older: set[type] = set()  # requests whose stream the peer does not know, while the session lasts
        self._answers: dict[int, asyncio.Future[bytes]] = {}  # of unary calls, by call number
        self._next_number = 1
        self._closing = Closing()
        self.closed = False

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        assert timeout_ms > 0, "every call has a deadline"
        call = (OLDER if type(request) in self._older else BY_REQUEST)[type(request)]
        data = call.codec.encode_request(request)
        if self.closed:
            return _failed(NotDelivered(f"{call.method.name}: the connection to {self.address} is closed"))
        if len(data) > MAX_MESSAGE_BYTES_DEFAULT:
            return _failed(NotDelivered(f"{call.method.name}: {len(data)} bytes are above the limit of a message"))
        if call.ordered:
            return self._ordered(call, data, expects_answer(request), timeout_ms)
        return self._unary(call, data, timeout_ms)

    def begin(self, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        return begin_by_task(self.call(request, timeout_ms), ended, self._nursery, f"call to {self.address}")

    def on_closed(self, callback: Callable[[], None]) -> None:
        self._closing.on_closed(callback)

    async def close(self) -> None:
        self.closed = True
        self.abandon()
        if self._prover is not None:
            self._prover.close()
        self._on_end(OutcomeUnknown("the connection was closed"))
        await self._nursery.close()

    def abandon(self) -> None:
        """The kernel's work after the process ended: the peer is told, this process is not."""
        if self._session is not None:
            self._session.close(CLIENT)

    # ---- the session

    def on_message(self, message: Message) -> None:
        self._loop.deliver(self._on_answer, message)

    def on_broken(self) -> None:
        self._loop.deliver(self._on_end, OutcomeUnknown(f"the connection to {self.address} broke"), self._session)

    def _connect(self) -> asyncio.Future[None]:
        """The current connection attempt, or a new one."""
        if self._connecting is None:
            attempt = self._connecting = self._loop.create_future()
            attempt.add_done_callback(lambda done: done.exception())  # retrieved here, because it may have no waiter
            self._loop.call_later(CONNECT_TIMEOUT_MS_DEFAULT / 1000, self._on_connected, attempt, None, "no answer")
            self._network.connect(
                self._host,
                self.address,
                (*to_metadata(self._client_id), *known_as(self._user)),
                lambda session: self._arrived(attempt, session),
            )
        return self._connecting

    def _arrived(self, attempt: asyncio.Future[None], session: Session | None) -> None:
        if session is not None and not self._loop.alive:
            session.end_unused(CLIENT)
        self._loop.deliver(self._on_connected, attempt, session, "refused")

    def _on_connected(self, attempt: asyncio.Future[None], session: Session | None, failure: str) -> None:
        if attempt.done() or self.closed:
            if session is not None:  # too late: no caller waits any more
                session.end_unused(CLIENT)
            return
        self._connecting = None
        if session is None:
            error = NotDelivered(f"{self.address}: {failure}")
            attempt.set_exception(error)
            self._fail_streams(error)
            return
        self._session = session
        self._older.clear()
        session.attach(CLIENT, self)
        attempt.set_result(None)
        for path in list(self._streams):
            self._flush(path)

    def _on_end(self, error: RpcError, session: Session | None = None) -> None:
        """The session has ended, or the attempt to open one."""
        if session is not self._session and session is not None:
            return
        opened, self._session = self._session is not None, None
        attempt, self._connecting = self._connecting, None
        if attempt is not None and not attempt.done():
            attempt.set_exception(NotDelivered(str(error)))
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            if not answer.done():
                answer.set_exception(error)
        broke = opened and any(stream.is_open for stream in self._streams.values())
        self._fail_streams(error)
        if broke:
            self._closing.close()

    # ---- ordered calls

    def _ordered(self, call: Call, data: bytes, answered: bool, timeout_ms: int) -> Awaitable[Any]:
        path = call.method.path
        if path not in self._streams:
            self._streams[path] = _Stream(call)
        waiting = self._streams[path].calls.add(data, answered, timeout_ms)
        if self._session is None:
            self._connect()
        else:
            self._flush(path)
        return waiting.wait()

    def _flush(self, path: str) -> None:
        """Send what waits on this stream; open it first."""
        assert self._session is not None
        stream = self._streams[path]
        if stream.is_open:
            self._send_waiting(path, stream, self._session)
        elif self._prover is None:
            stream.is_open = True
            self._send_waiting(path, stream, self._session)
        elif not stream.is_opening:
            stream.is_opening = True
            self._nursery.start(self._open(path, stream, self._prover), f"open {path}")

    async def _open(self, path: str, stream: _Stream, prover: Prover) -> None:
        """A session that the server has forgotten would break the stream, so it gets a fresh one."""
        try:
            session = await prover.session(fresh=True)
        except ApiError as refusal:
            if self._streams.get(path) is stream:
                del self._streams[path]
                stream.calls.refuse(refusal)
            return
        except NotDelivered as error:
            if self._streams.get(path) is stream:
                del self._streams[path]
                stream.calls.fail(error)
            return
        if self._streams.get(path) is stream and self._session is not None:
            stream.opening, stream.proof = session.open_stream(path)
            stream.is_open = True
            self._send_waiting(path, stream, self._session)

    def _send_waiting(self, path: str, stream: _Stream, session: Session) -> None:
        while (call := stream.calls.take()) is not None:
            data = call.data if stream.proof is None else stream.proof.seal(call.data)
            opening, stream.opening = stream.opening, None
            session.send(CLIENT, self._message(path, Phase.REQUEST, ordered=True, data=data, proof=opening))
            if not call.answered:
                call.succeed(None)

    def _fail_streams(self, error: RpcError) -> None:
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.calls.fail(error if stream.is_open else NotDelivered(str(error)))

    # ---- unary calls

    async def _unary(self, call: Call, data: bytes, timeout_ms: int) -> Any:
        deadline_s = self._loop.time() + timeout_ms / 1000
        name, path = f"{call.method.name} to {self.address}", call.method.path

        async def send(proof: bytes | None) -> bytes:
            return await self._exchange(name, path, data, deadline_s, proof)

        try:
            if self._prover is None:
                return call.codec.decode_response(await send(None))
            await self._connected(name, deadline_s)
            return call.codec.decode_response(await self._prover.call(path, data, deadline_s, send))
        except ApiError as refusal:
            return failure(call.method, refusal)
        except DecodeError as error:
            raise OutcomeUnknown(f"{name}: the response cannot be decoded: {error}") from error

    async def _ask(self, message: bytes, timeout_ms: int) -> bytes:
        """Send a message of the proof."""
        deadline_s = self._loop.time() + timeout_ms / 1000
        try:
            return await self._exchange("proof", prove_method.PATH, message, deadline_s, None)
        except RpcError as error:
            raise NotDelivered(str(error)) from None  # no call was sent

    async def _connected(self, name: str, deadline_s: float) -> Session:
        try:
            async with asyncio.timeout_at(deadline_s):
                while self._session is None:
                    await asyncio.shield(self._connect())
        except TimeoutError:
            raise NotDelivered(f"{name}: not connected in time") from None
        return self._session

    async def _exchange(self, name: str, path: str, data: bytes, deadline_s: float, proof: bytes | None) -> bytes:
        """One unary request and its answer. Raises StaleProof, RpcError."""
        session = await self._connected(name, deadline_s)
        number = self._next_number
        self._next_number += 1
        answer: asyncio.Future[bytes] = self._loop.create_future()
        self._answers[number] = answer
        remaining_ms = max(1, int((deadline_s - self._loop.time()) * 1000))
        session.send(
            CLIENT,
            self._message(path, Phase.REQUEST, number=number, data=data, timeout_ms=remaining_ms, proof=proof),
        )
        try:
            async with asyncio.timeout_at(deadline_s):
                return await answer
        except TimeoutError:
            raise OutcomeUnknown(f"{name}: no answer in time") from None
        except asyncio.CancelledError:
            session.send(CLIENT, self._message(path, Phase.CANCEL, number=number))
            raise
        finally:
            self._answers.pop(number, None)

    def _on_answer(self, message: Message) -> None:
        if message.phase is Phase.UNKNOWN:
            self._on_unknown(message.path)
            return
        if message.ordered:
            stream = self._streams.get(message.path)
            if stream is None or not stream.calls.on_answer(message.data):
                self.abandon()
                self._on_end(OutcomeUnknown("the peer sent an answer without a request"))
            return
        answer = self._answers.get(message.number)
        if answer is None or answer.done():  # it timed out, or this is a duplicate
            return
        if message.phase is Phase.STALE:
            answer.set_exception(StaleProof(message.path))
        else:
            answer.set_result(message.data)

    def _on_unknown(self, path: str) -> None:
        stream = self._streams.pop(path, None)
        if stream is not None:
            self._older.add(BY_PATH[path].method.request)
            stream.calls.fail(NotDelivered(f"{self.address} does not know {path}"))

    def _message(
        self,
        path: str,
        phase: Phase,
        *,
        ordered: bool = False,
        number: int = 0,
        data: bytes = b"",
        timeout_ms: int = 0,
        proof: bytes | None = None,
    ) -> Message:
        return Message(
            source=self._host,
            destination=self.address.host,
            path=path,
            phase=phase,
            ordered=ordered,
            number=number,
            data=data,
            timeout_ms=timeout_ms,
            proof=proof,
        )


async def _failed(error: RpcError) -> Any:
    raise error
