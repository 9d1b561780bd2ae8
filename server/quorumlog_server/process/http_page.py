"""A page of the HTTP port, and its bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus


@dataclass(frozen=True, slots=True)
class Page:
    """headers: beside those of its body."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()

    def encode(self) -> bytes:
        own = (
            ("Content-Type", self.content_type),
            ("Content-Length", str(len(self.body))),
            ("Connection", "close"),
            *self.headers,
        )
        head = "".join(f"{name}: {value}\r\n" for name, value in own)
        status = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n"
        return f"{status}{head}\r\n".encode("latin-1") + self.body


Route = Callable[[], Page | Awaitable[Page]]
