"""The console before a real node, in one process: requests go to the application itself, on the node's loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx

from quorumlog_console.app import make_app
from quorumlog_console.console import Console
from quorumlog_console.options import ConsoleOptions, Login
from tests.scenarios.one_node import LANE, RealNode

T = TypeVar("T")
Browse = Callable[[httpx.AsyncClient, Console], Awaitable[T]]


def options(at: RealNode, listener: str = LANE, login: Login = Login.ASK_CLUSTER, **more: Any) -> ConsoleOptions:
    client = {"bootstrap_servers": str(at.node.addresses[listener]), **more.pop("client", {})}
    return ConsoleOptions(client=client, login=login, **more)


def browse(at: RealNode, given: ConsoleOptions, visit: Browse[T], peer: str = "127.0.0.1") -> T:
    """A console for one visit. peer: where the browser runs."""

    async def run() -> T:
        app = make_app(given)
        transport = httpx.ASGITransport(app, client=(peer, 50_000))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as browser,
        ):
            return await visit(browser, app.state.console)

    return at.do(run())
