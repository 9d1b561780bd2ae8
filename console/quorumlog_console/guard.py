"""What every request passes and every answer carries: methods, the header Host, headers for browsers.

A page elsewhere can make a browser on this machine ask here for whatever name that page has (DNS rebinding): only
numbers, localhost and the names that the console was given are answered. Nothing is written to the cluster: GET and
HEAD, and POST for the form of the login.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOGIN_PATH = "/login"
HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ),
    ("X-Frame-Options", "DENY"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
OF_STATIC = "public, max-age=300"


class Guard:
    """host_names: beside numbers and localhost."""

    def __init__(self, app: ASGIApp, host_names: Iterable[str] = ()) -> None:
        self._app = app
        self._names = frozenset(one.lower() for one in ("localhost", *host_names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # a WebSocket is not answered

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS:
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1 or not self.is_own(hosts[0]):
            text = "this name is not the console's: ask for its number or localhost, or start it with --host-name\n"
            return PlainTextResponse(text, 421)
        method, path = scope["method"], scope["path"]
        if method in ("GET", "HEAD") or (method == "POST" and path == LOGIN_PATH):
            return None
        allowed = "GET, HEAD, POST" if path == LOGIN_PATH else "GET, HEAD"
        return PlainTextResponse("the console only reads\n", 405, {"Allow": allowed})

    def is_own(self, host: str) -> bool:
        """host: of the header, with or without a port."""
        name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
        if name.lower() in self._names:
            return True
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True
