"""Connections to the console that ask nothing, ask for ever, or take no answer: they end, and others are served."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from quorumlog_console import connections
from quorumlog_console.connections import BoundedConnection
from quorumlog_console.options import ConsoleOptions
from quorumlog_console.serving import server

MOST = 3
WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
Open = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """One byte; at /flood more than any peer takes; at /tail some of them, slowly."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    while scope["path"] == "/flood":
        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
        await asyncio.sleep(0)  # to a peer that is gone, sending gives no way
    for _ in range(20 if scope["path"] == "/tail" else 0):
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await asyncio.sleep(0.02)
    await send({"type": "http.response.body", "body": b"x"})


def served(do: Callable[[Open, ServerState], Awaitable[None]]) -> None:
    async def run() -> None:
        state = ServerState()
        config = uvicorn.Config(app, lifespan="off", limit_concurrency=MOST + 1, log_config=None, log_level="error")
        listening = await asyncio.get_running_loop().create_server(
            lambda: BoundedConnection(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        port = listening.sockets[0].getsockname()[1]
        async with asyncio.timeout(10):
            await do(lambda: asyncio.open_connection("127.0.0.1", port), state)
        listening.close()
        for one in list(state.connections):
            one.transport.abort()  # type: ignore[union-attr]
        await asyncio.gather(*state.tasks, return_exceptions=True)

    asyncio.run(run())


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        while await reader.read(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def test_the_one_that_waits_longest_goes_for_a_new_one() -> None:
    async def do(connect: Open, state: ServerState) -> None:
        idle = [await connect() for _ in range(MOST)]
        reader, writer = await connect()
        writer.write(WHOLE)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert await is_closed(idle[0][0])
        assert len(state.connections) == MOST
        for _ in range(5 * MOST):
            await connect()
        await asyncio.sleep(0)
        assert len(state.connections) <= MOST

    served(do)


@pytest.mark.parametrize(
    "sent", [b"", WHOLE[:20], WHOLE + b"G", WHOLE.replace(b"\r\n\r\n", b"\r\nContent-Length: 9\r\n\r\nab")]
)
def test_a_request_that_does_not_come_whole_is_not_waited_for(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_S", 0.1)

    async def do(connect: Open, state: ServerState) -> None:
        reader, writer = await connect()
        writer.write(sent)
        assert await is_closed(reader)
        assert not state.connections

    served(do)


def test_an_answer_that_nobody_takes_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WRITE_S", 0.1)

    async def do(connect: Open, state: ServerState) -> None:
        _, writer = await connect()
        writer.transport.pause_reading()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        writer.write(WHOLE.replace(b"/ ", b"/flood "))
        while not state.tasks:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        while state.connections:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        writer.transport.abort()
        (task,) = state.tasks or (None,)
        if task is not None:
            task.cancel()  # this app goes on though nobody is there

    served(do)


def test_an_answer_that_takes_its_time_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a live tail, which lasts for hours."""
    monkeypatch.setattr(connections, "READ_S", 0.1)

    async def do(connect: Open, state: ServerState) -> None:
        reader, writer = await connect()
        writer.write(WHOLE.replace(b"/ ", b"/tail "))
        assert (await reader.readuntil(b"0\r\n\r\n")).count(b"x\r\n") == 21

    served(do)


def test_the_console_bounds_its_connections() -> None:
    config = server(ConsoleOptions(client={"bootstrap_servers": "127.0.0.1:1"})).config
    assert config.http is BoundedConnection
    assert config.limit_concurrency == ConsoleOptions(client={}).limits.connections + 1
