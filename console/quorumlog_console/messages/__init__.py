"""The records of a topic: their pages and their live tail. `quorumlog.client.looking` finds, matches and shows them."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from quorumlog_console.messages.listed import messages
from quorumlog_console.messages.live import stream, tail
from quorumlog_console.messages.one import bytes_of, one

ROUTES: list[BaseRoute] = [
    Route("/topics/{name}/messages", messages),
    Route("/topics/{name}/messages/one", one),
    Route("/topics/{name}/messages/bytes", bytes_of),
    Route("/topics/{name}/messages/tail", tail),
    Route("/topics/{name}/messages/stream", stream),
]
