"""A link that is cut: nothing passes and nobody is told; with the healing all goes on in its order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from quorumlog.nursery import Nursery
from quorumlog.rpc.begun_call import begin_by_task
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.cuttable import CuttableTransport
from quorumlog.rpc.transport import (
    Address,
    Answered,
    Cancel,
    Connection,
    Handler,
    Listener,
    NoProof,
    NotDelivered,
    OnEnded,
    OutcomeUnknown,
    ProbeResult,
    Refused,
    Server,
)

PEER, OTHER = Address("h", 1), Address("h", 2)
LONG_MS, SHORT_MS = 60_000, 20


class Inner:
    """A transport whose peers answer when the test says so. sent: requests, in the order in which they left."""

    def __init__(self) -> None:
        self.sent: list[tuple[Address, str]] = []
        self.answers: dict[str, asyncio.Future[str]] = {}
        self.connections: list[InnerConnection] = []
        self.probed: ProbeResult = Refused()

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Connection:
        self.connections.append(InnerConnection(self, address))
        return self.connections[-1]

    async def listen(self, listener: Listener, handler: Handler) -> Server:
        raise NotImplementedError

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        return self.probed


class InnerConnection:
    def __init__(self, world: Inner, address: Address) -> None:
        self.address, self._world = address, world
        self.closing = Closing()
        self._nursery = Nursery(lambda _name, error: pytest.fail(str(error)))

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        self._world.sent.append((self.address, request))
        future = self._world.answers[request] = asyncio.get_running_loop().create_future()
        return future

    def begin(self, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        return begin_by_task(self.call(request, timeout_ms), ended, self._nursery, request)

    def on_closed(self, callback: Callable[[], None]) -> None:
        self.closing.on_closed(callback)

    async def close(self) -> None:
        self.closing.close()
        await self._nursery.close()


def run(test: Callable[[Inner, CuttableTransport, Connection], Awaitable[None]]) -> None:
    async def main() -> None:
        inner = Inner()
        transport = CuttableTransport(inner, lambda _name, error: pytest.fail(str(error)))
        async with asyncio.timeout(5):
            await test(inner, transport, transport.connect(PEER, internal=True))

    asyncio.run(main())


async def soon() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def begun(connection: Connection, request: str, timeout_ms: int, told: list[Any]) -> Cancel:
    def ended(response: Any, error: Exception | None) -> None:
        told.append(error if error is not None else response)

    return connection.begin(request, timeout_ms, ended)


def test_what_is_called_while_it_is_cut_leaves_with_the_healing_in_its_order() -> None:
    async def check(inner: Inner, transport: CuttableTransport, connection: Connection) -> None:
        transport.cut({PEER})
        told: list[Any] = []
        first = asyncio.ensure_future(connection.call("a", LONG_MS))
        begun(connection, "b", LONG_MS, told)
        await soon()
        assert inner.sent == []
        transport.cut(())
        later = asyncio.ensure_future(connection.call("c", LONG_MS))
        await soon()
        assert inner.sent == [(PEER, "a"), (PEER, "b"), (PEER, "c")]
        for request, future in inner.answers.items():
            future.set_result(request.upper())
        assert (await first, await later) == ("A", "C")
        await soon()
        assert told == ["B"]

    run(check)


@pytest.mark.parametrize("is_error", [False, True])
def test_what_ends_while_it_is_cut_is_told_with_the_healing(is_error: bool) -> None:
    async def check(inner: Inner, transport: CuttableTransport, connection: Connection) -> None:
        told: list[Any] = []
        called = asyncio.ensure_future(connection.call("a", LONG_MS))
        begun(connection, "b", LONG_MS, told)
        await soon()
        transport.cut({PEER})
        for request, future in inner.answers.items():
            future.set_exception(NotDelivered(request)) if is_error else future.set_result(request)
        await soon()
        assert not called.done() and told == []
        transport.cut(())
        await asyncio.wait([called])
        await soon()
        if is_error:
            assert isinstance(called.exception(), NotDelivered) and isinstance(told[0], NotDelivered)
        else:
            assert called.result() == "a" and told == ["b"]

    run(check)


def test_the_deadline_of_what_waits_leaves_its_outcome_unknown() -> None:
    async def check(inner: Inner, transport: CuttableTransport, connection: Connection) -> None:
        told: list[Any] = []
        sent = asyncio.ensure_future(connection.call("sent", SHORT_MS))
        begun(connection, "begun", SHORT_MS, told)
        await soon()
        transport.cut({PEER})
        inner.answers["sent"].set_result("answer")
        inner.answers["begun"].set_exception(NotDelivered("refused"))  # a peer that has died is not told apart
        with pytest.raises(OutcomeUnknown, match="did not answer within 20 ms"):
            await connection.call("never sent", SHORT_MS)
        with pytest.raises(OutcomeUnknown):
            await sent
        await asyncio.sleep(SHORT_MS / 1000)
        assert isinstance(told[0], OutcomeUnknown) and len(told) == 1
        transport.cut(())
        await soon()
        assert [request for _, request in inner.sent] == ["sent", "begun"]

    run(check)


def test_a_link_alone_is_cut() -> None:
    async def check(inner: Inner, transport: CuttableTransport, connection: Connection) -> None:
        transport.cut({OTHER})
        whole = asyncio.ensure_future(connection.call("a", LONG_MS))
        client = asyncio.ensure_future(transport.connect(OTHER, internal=False).call("b", LONG_MS))
        await soon()
        assert inner.sent == [(PEER, "a"), (OTHER, "b")]  # clients' listeners stay
        for one in (whole, client):
            one.cancel()

    run(check)


def test_a_lost_connection_and_a_closed_port_are_not_heard_of_either() -> None:
    async def check(inner: Inner, transport: CuttableTransport, connection: Connection) -> None:
        closed: list[str] = []
        connection.on_closed(lambda: closed.append("peer"))
        assert await transport.probe(PEER, LONG_MS) == Refused()
        transport.cut({PEER})
        inner.connections[0].closing.close()
        assert closed == [] and isinstance(await transport.probe(PEER, SHORT_MS), NoProof)
        waiting = asyncio.ensure_future(transport.probe(PEER, LONG_MS))
        await soon()
        inner.probed = Answered(2, bytes(16))
        transport.cut(())
        assert closed == ["peer"] and await waiting == inner.probed

    run(check)


def test_what_is_given_up_is_not_sent() -> None:
    async def check(inner: Inner, transport: CuttableTransport, connection: Connection) -> None:
        told: list[Any] = []
        transport.cut({PEER})
        cancel, call = begun(connection, "a", LONG_MS, told), asyncio.ensure_future(connection.call("b", LONG_MS))
        await soon()
        cancel()
        call.cancel()
        await soon()
        transport.cut(())
        await soon()
        assert inner.sent == [] and told == []

    run(check)


def test_closing_ends_what_waits() -> None:
    async def check(inner: Inner, transport: CuttableTransport, connection: Connection) -> None:
        told: list[Any] = []
        transport.cut({PEER})
        begun(connection, "a", LONG_MS, told)
        call = asyncio.ensure_future(connection.call("b", LONG_MS))
        await soon()
        await connection.close()
        with pytest.raises(OutcomeUnknown):
            await call
        assert isinstance(told[0], OutcomeUnknown) and inner.sent == []

    run(check)
