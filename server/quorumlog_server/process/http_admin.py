"""/healthz, /readyz and /metrics over plain HTTP/1.1, for load balancers and Prometheus.

GET only, one request per connection, a head of at most MAX_HEAD_BYTES within HEAD_TIMEOUT_S. Read-only by design: all
changes go through the cluster's own API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from quorumlog.rpc.transport import Address

MAX_HEAD_BYTES = 8_192
HEAD_TIMEOUT_S = 5.0
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Route = Callable[[], Page | Awaitable[Page]]


class HttpAdmin:
    """Serves `routes` (path -> page) from `start` to `close`."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self._routes = routes
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> Address:
        """Returns the actual address; port 0 asks for a free port. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_HEAD_BYTES)
        used = self._server.sockets[0].getsockname()
        return Address(host, used[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                page = self._page(head)
                writer.write(_encode(page if isinstance(page, Page) else await page))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a peer that does not finish its request gets no answer
        except asyncio.CancelledError:
            pass  # the loop ends; before Python 3.13 streams would report this as a failed callback
        finally:
            writer.close()

    def _page(self, head: bytes) -> Page | Awaitable[Page]:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return Page(400, b"not an HTTP/1 request\n")
        if words[0] != b"GET":
            return Page(405, b"only GET is served\n")
        route = self._routes.get(words[1].split(b"?", 1)[0].decode("latin-1"))
        return route() if route else Page(404, f"known paths: {', '.join(self._routes)}\n".encode())


def _encode(page: Page) -> bytes:
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
        f"Content-Type: {page.content_type}\r\nContent-Length: {len(page.body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + page.body
