"""/healthz, /readyz, /node and /metrics over HTTP/1.1, for load balancers and Prometheus; over TLS where it is set.

Whoever speaks another protocol to it is named in the log, once a minute for an address; who comes and goes without a
byte is counted.

GET only, one request per connection, a head of at most MAX_HEAD_BYTES, and HEAD_TIMEOUT_S from the first byte of a
connection to the last of its answer. Read-only by design: all changes go through the cluster's own API.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from quorumlog.rpc.transport import Address
from quorumlog.wire.format.framing import TLS_HELLO
from quorumlog.wire.serving.gate import RefusalLines, host_of
from quorumlog_server.process.http_access import IN_A_WORD, Asking, Door, OpenDoor, in_a_word
from quorumlog_server.process.http_page import Page, Route

if TYPE_CHECKING:
    import ssl

    from quorumlog.wire.serving.tls_transport import TlsTransport

MAX_HEAD_BYTES = 8_192
MAX_CONNECTIONS = 256  # the oldest goes for a new one
HEAD_TIMEOUT_S = 5.0
_END = b"\r\n\r\n"
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\x00-\x08\x0a-\x1f\x7f]*)")
_OF_PROXIES = ("forwarded", "via", "x-real-ip")  # headers
_TLS_BYTES = 64 << 10  # of what is decrypted at a time, shared by all connections


class HttpAdmin:
    """Serves `routes` (path -> page) from `start` to `close`. door: who may see them. context: of new connections;
    None: in clear."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        door: Door | None = None,
        context: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._routes, self._door, self._context = routes, door or OpenDoor(), context
        self._server: asyncio.Server | None = None
        self._open: dict[_Connection, None] = {}  # oldest first
        self._scratch: memoryview | None = None
        self._lines = RefusalLines()
        self.told: Counter[str] = Counter()  # how often what happened: probes, foreign, failed handshakes

    async def start(self, host: str, port: int) -> Address:
        """Returns the actual address; port 0 asks for a free port. Raises OSError."""
        self._server = await asyncio.get_running_loop().create_server(self._accept, host, port)
        used = self._server.sockets[0].getsockname()
        return Address(host, used[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._open):
            connection.abort()

    def _accept(self) -> asyncio.BaseProtocol:
        connection = _Connection(self)
        self.came(connection)
        if self._context is None:
            return connection
        from quorumlog.wire.serving.tls_transport import TlsTransport

        if self._scratch is None:
            self._scratch = memoryview(bytearray(_TLS_BYTES))
        return TlsTransport(connection, self._context(), connection, self._scratch, HEAD_TIMEOUT_S)

    # --- called by connections

    def came(self, connection: _Connection) -> None:
        self._open[connection] = None
        if len(self._open) > MAX_CONNECTIONS:
            next(iter(self._open)).abort()

    def left(self, connection: _Connection) -> None:
        self._open.pop(connection, None)

    def refused(self, transport: asyncio.BaseTransport, what: str, reason: str) -> None:
        """One who did not get as far as a request. what: for the counters."""
        self.told[what] += 1
        text = f"refused {host_of(transport)} at the port of metrics: {reason}"
        self._lines.refused(
            text if what == "foreign" else f"refused {host_of(transport)} at the port of metrics: {what}", text
        )

    async def page_of(self, head: bytes, transport: asyncio.Transport) -> Page:
        """The answer to a request whose head it is."""
        lines = head.split(b"\r\n")
        words = lines[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return Page(400, b"not an HTTP/1 request\n")
        if words[0] != b"GET":
            return Page(405, b"only GET is served\n", headers=(("Allow", "GET"),))
        path = words[1].split(b"?", 1)[0].decode("latin-1")
        route = self._routes.get(path)
        if route is None:
            return Page(404, f"known paths: {', '.join(self._routes)}\n".encode())
        headers = _headers_of(lines[1:])
        if headers is None:
            return Page(400, b"a header that can be read in two ways\n")
        refusal = await self._door.refusal(_asking(path, headers, transport))
        in_a_word_too = path in IN_A_WORD and refusal is not None and refusal.status == HTTPStatus.FORBIDDEN
        if refusal is not None and not in_a_word_too:
            return refusal
        made = route()
        page = made if isinstance(made, Page) else await made
        return page if refusal is None else in_a_word(page)


class _Connection(asyncio.BufferedProtocol):
    """One request and its answer. It is what a TLS transport tells of its handshake, too."""

    def __init__(self, admin: HttpAdmin) -> None:
        self._admin = admin
        self._head = bytearray(MAX_HEAD_BYTES)
        self._filled = 0
        self._transport: asyncio.Transport | None = None
        self._answering: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(HEAD_TIMEOUT_S, self.abort)

    def abort(self) -> None:
        """A peer that does not finish its request, or does not take its answer, is not waited for."""
        if self._transport is not None:
            self._transport.abort()
        self._gone()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._head)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        assert self._transport is not None
        self._filled += nbytes
        if self._head.startswith(TLS_HELLO):
            self._admin.refused(self._transport, "foreign", "TLS to the plain port of metrics")
            self.abort()
            return
        end = self._head.find(_END, 0, self._filled)
        if end >= 0:
            self._transport.pause_reading()  # nothing is read behind a request
            self._answering = asyncio.get_running_loop().create_task(self._answer(bytes(self._head[:end])))
        elif self._filled == MAX_HEAD_BYTES:
            self.abort()

    def eof_received(self) -> bool:
        return self._answering is not None  # it still gets its answer

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._filled:
            self._admin.told["probes"] += 1
        self._gone()

    async def _answer(self, head: bytes) -> None:
        assert self._transport is not None
        page = await self._admin.page_of(head, self._transport)
        self._transport.write(page.encode())
        self._transport.close()

    def _gone(self) -> None:
        self._timer.cancel()
        if self._answering is not None:
            self._answering.cancel()
        self._admin.left(self)

    # --- `tls_transport.Handshakes`

    def began(self, transport: TlsTransport) -> None:
        self._transport = transport

    def succeeded(self, transport: TlsTransport) -> None:
        pass

    def failed(self, transport: TlsTransport, reason: str) -> None:
        if reason:
            self._admin.refused(transport, "failed handshakes", reason)
        else:
            self._admin.told["probes"] += 1
        self._gone()

    def in_clear(self, transport: TlsTransport, looks: str) -> None:
        self._admin.refused(transport, "foreign", f"no TLS to the TLS port of metrics{f', {looks}' if looks else ''}")
        self._gone()


def _headers_of(lines: list[bytes]) -> list[tuple[str, str]] | None:
    """Names in lower case. None: a proxy may have read something else in it (RFC 9112, 2.2, 3.2 and 5)."""
    found = []
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            return None
        found.append((header[1].decode("ascii").lower(), header[2].decode("latin-1").strip(" \t")))
    return found if sum(name == "host" for name, _ in found) <= 1 else None


def _asking(path: str, headers: list[tuple[str, str]], transport: asyncio.Transport) -> Asking:
    host = next((value for name, value in headers if name == "host"), "")
    authorization = [value for name, value in headers if name == "authorization"]
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    peer = transport.get_extra_info("peername")
    return Asking(
        path=path,
        peer=str(peer[0]) if peer else "",
        host=host,
        is_forwarded=any(name.startswith("x-forwarded-") or name in _OF_PROXIES for name, _ in headers),
        is_encrypted=tls is not None,
        certificate=None if tls is None else tls.getpeercert(binary_form=True),
        authorization=authorization,
    )
