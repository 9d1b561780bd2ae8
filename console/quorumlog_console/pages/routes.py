"""Which path shows which page."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from quorumlog_console.guard import LOGIN_PATH
from quorumlog_console.pages.causes import causes
from quorumlog_console.pages.events import events
from quorumlog_console.pages.groups import group, groups
from quorumlog_console.pages.login import login, logout
from quorumlog_console.pages.moves import moves
from quorumlog_console.pages.nodes import nodes
from quorumlog_console.pages.overview import overview
from quorumlog_console.pages.quorum import quorum
from quorumlog_console.pages.rights import rights
from quorumlog_console.pages.settings import settings
from quorumlog_console.pages.topics import topic, topics
from quorumlog_console.pages.transactions import transactions

ROUTES: list[BaseRoute] = [
    Route("/", overview),
    Route("/causes", causes),
    Route("/nodes", nodes),
    Route("/quorum", quorum),
    Route("/topics", topics),
    Route("/topics/{name}", topic),
    Route("/groups", groups),
    Route("/groups/one", group),  # ?id=: a group may be named "..", or with any character
    Route("/transactions", transactions),
    Route("/moves", moves),
    Route("/settings", settings),
    Route("/rights", rights),
    Route("/events", events),
    Route(LOGIN_PATH, login, methods=["GET", "POST"]),
    Route("/logout", logout),
]
