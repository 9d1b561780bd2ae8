"""The console as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from quorumlog_console.console import Console
from quorumlog_console.guard import OF_STATIC, Guard
from quorumlog_console.messages import ROUTES as OF_MESSAGES
from quorumlog_console.options import ConsoleOptions
from quorumlog_console.pages.routes import ROUTES
from quorumlog_console.trouble import not_found

FOLDER = Path(__file__).parent


class Static(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = OF_STATIC
        return response


def make_app(options: ConsoleOptions) -> Starlette:
    console = Console(options)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        console.start()
        try:
            yield
        finally:
            await console.close()

    routes: list[BaseRoute] = [*ROUTES, *OF_MESSAGES, Mount("/static", Static(directory=FOLDER / "static"))]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Guard, host_names=options.host_names)],
        exception_handlers={404: not_found},
    )
    app.state.console = console
    return app
