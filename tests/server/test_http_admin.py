"""The admin pages over a real socket."""

from __future__ import annotations

import asyncio

import pytest

from quorumlog_server.edge.fail_stop import stop_on_loop_errors
from quorumlog_server.process.http_admin import HttpAdmin
from quorumlog_server.process.http_page import Page

CASES = [
    ("a page", b"GET /hello HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK", b"hello"),
    ("with a query", b"GET /hello?a=b HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK", b"hello"),
    ("not ready", b"GET /busy HTTP/1.0\r\n\r\n", b"HTTP/1.1 503", b"later"),
    ("a page that takes a while", b"GET /slow HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK", b"at last"),
    ("no page", b"GET /nope HTTP/1.1\r\n\r\n", b"HTTP/1.1 404", b"known paths: /hello, /busy, /slow"),
    ("not a GET", b"POST /hello HTTP/1.1\r\n\r\n", b"HTTP/1.1 405", b""),
    ("not HTTP", b"hello\r\n\r\n", b"HTTP/1.1 400", b""),
    ("two hosts", b"GET /hello HTTP/1.1\r\nHost: evil\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 400", b""),
    ("a blank before a colon", b"GET /hello HTTP/1.1\r\nHost : localhost\r\n\r\n", b"HTTP/1.1 400", b""),
    ("a folded line", b"GET /hello HTTP/1.1\r\nHost: evil\r\n Host: localhost\r\n\r\n", b"HTTP/1.1 400", b""),
    ("half a line end", b"GET /hello HTTP/1.1\r\nHost: evil\nHost: localhost\r\n\r\n", b"HTTP/1.1 400", b""),
    ("no name", b"GET /hello HTTP/1.1\r\nlocalhost\r\n\r\n", b"HTTP/1.1 400", b""),
    ("a byte that is no text", b"GET /hello HTTP/1.1\r\nHost: a\0b\r\n\r\n", b"HTTP/1.1 400", b""),
    ("too long", b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", b"", b""),
    ("not finished", b"GET /hel", b"", b""),
]


async def slow() -> Page:
    await asyncio.sleep(0)
    return Page(200, b"at last")


async def ask(sent: bytes) -> bytes:
    admin = HttpAdmin({"/hello": lambda: Page(200, b"hello"), "/busy": lambda: Page(503, b"later"), "/slow": slow})
    address = await admin.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(sent)
    writer.write_eof()
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
        await admin.close()


@pytest.mark.parametrize(("sent", "status", "body"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_pages(sent: bytes, status: bytes, body: bytes) -> None:
    answer = asyncio.run(ask(sent))
    assert answer.startswith(status)
    assert body in answer
    assert bool(answer) == bool(status)


def test_a_request_in_progress_when_the_node_stops_is_not_a_failure() -> None:
    """A cancelled handler is not an error, although asyncio's streams report one before Python 3.13."""
    crashes: list[BaseException] = []

    async def scenario() -> None:
        stop_on_loop_errors(asyncio.get_running_loop(), lambda _, error: crashes.append(error))
        asked = asyncio.Event()

        async def never() -> Page:
            asked.set()
            await asyncio.Event().wait()
            return Page(200, b"")

        admin = HttpAdmin({"/never": never})
        address = await admin.start("127.0.0.1", 0)
        _, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"GET /never HTTP/1.1\r\n\r\n")
        await asked.wait()
        await admin.close()

    asyncio.run(scenario())
    assert crashes == []
