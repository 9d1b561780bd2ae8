"""The client side of the simulated transport: `transport.Connection` over sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from jepsen.sim.loop import SimLoop
from jepsen.sim.message import CLIENT, Message, Phase
from jepsen.sim.network import Network
from jepsen.sim.session import Session
from quorumlog.messages.decode_error import DecodeError
from quorumlog.rpc.caller import Metadata
from quorumlog.rpc.calls import BY_REQUEST, Call, expects_answer
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.ordered_calls import OrderedCalls
from quorumlog.rpc.transport import (
    CONNECT_TIMEOUT_MS_DEFAULT,
    MAX_MESSAGE_BYTES_DEFAULT,
    Address,
    NotDelivered,
    OutcomeUnknown,
    RpcError,
)


class SimConnection:
    """Connects on the first call. After its session broke, the next call connects again."""

    def __init__(self, network: Network, host: str, loop: SimLoop, address: Address, metadata: Metadata) -> None:
        self.address = address
        self._network, self._host, self._loop, self._metadata = network, host, loop, metadata
        self._session: Session | None = None
        self._connecting: asyncio.Future[None] | None = None  # fails with NotDelivered
        self._streams: dict[str, OrderedCalls] = {}  # by path; of the current session or of the one being opened
        self._answers: dict[int, asyncio.Future[bytes]] = {}  # of unary calls, by call number
        self._next_number = 1
        self._closing = Closing()
        self.closed = False

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        assert timeout_ms > 0, "every call has a deadline"
        call = BY_REQUEST[type(request)]
        data = call.codec.encode_request(request)
        if self.closed:
            return _failed(NotDelivered(f"{call.method.name}: the connection to {self.address} is closed"))
        if len(data) > MAX_MESSAGE_BYTES_DEFAULT:
            return _failed(NotDelivered(f"{call.method.name}: {len(data)} bytes are above the limit of a message"))
        if call.ordered:
            return self._ordered(call, data, expects_answer(request), timeout_ms)
        return self._unary(call, data, timeout_ms)

    def on_closed(self, callback: Callable[[], None]) -> None:
        self._closing.on_closed(callback)

    async def close(self) -> None:
        self.closed = True
        self.abandon()
        self._on_end(OutcomeUnknown("the connection was closed"))

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
                self._metadata,
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
        broke = opened and bool(self._streams)
        self._fail_streams(error if opened else NotDelivered(str(error)))
        if broke:
            self._closing.close()

    # ---- ordered calls

    def _ordered(self, call: Call, data: bytes, answered: bool, timeout_ms: int) -> Awaitable[Any]:
        path = call.method.path
        calls = self._streams.setdefault(path, OrderedCalls(call))
        waiting = calls.add(data, answered, timeout_ms)
        if self._session is None:
            self._connect()
        else:
            self._flush(path)
        return waiting.wait()

    def _flush(self, path: str) -> None:
        assert self._session is not None
        while (call := self._streams[path].take()) is not None:
            self._session.send(CLIENT, self._message(path, Phase.REQUEST, ordered=True, data=call.data))
            if not call.answered:
                call.succeed(None)

    def _fail_streams(self, error: RpcError) -> None:
        streams, self._streams = self._streams, {}
        for calls in streams.values():
            calls.fail(error)

    # ---- unary calls

    async def _unary(self, call: Call, data: bytes, timeout_ms: int) -> Any:
        deadline = self._loop.time() + timeout_ms / 1000
        name = f"{call.method.name} to {self.address}"
        try:
            async with asyncio.timeout_at(deadline):
                while self._session is None:
                    await asyncio.shield(self._connect())
        except TimeoutError:
            raise NotDelivered(f"{name}: not connected within {timeout_ms} ms") from None
        number = self._next_number
        self._next_number += 1
        answer = self._answers[number] = self._loop.create_future()
        remaining_ms = max(1, int((deadline - self._loop.time()) * 1000))
        session, path = self._session, call.method.path
        session.send(CLIENT, self._message(path, Phase.REQUEST, number=number, data=data, timeout_ms=remaining_ms))
        try:
            async with asyncio.timeout_at(deadline):
                return call.codec.decode_response(await answer)
        except TimeoutError:
            raise OutcomeUnknown(f"{name}: no answer within {timeout_ms} ms") from None
        except DecodeError as error:
            raise OutcomeUnknown(f"{name}: the response cannot be decoded: {error}") from error
        except asyncio.CancelledError:
            session.send(CLIENT, self._message(path, Phase.CANCEL, number=number))
            raise
        finally:
            self._answers.pop(number, None)

    def _on_answer(self, message: Message) -> None:
        if message.ordered:
            calls = self._streams.get(message.path)
            if calls is None or not calls.on_answer(message.data):
                self.abandon()
                self._on_end(OutcomeUnknown("the peer sent an answer without a request"))
            return
        answer = self._answers.get(message.number)
        if answer is not None and not answer.done():  # otherwise it timed out, or this is a duplicate
            answer.set_result(message.data)

    def _message(
        self, path: str, phase: Phase, *, ordered: bool = False, number: int = 0, data: bytes = b"", timeout_ms: int = 0
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
        )


async def _failed(error: RpcError) -> Any:
    raise error
