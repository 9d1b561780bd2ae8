"""How a page is made: it gets the access of its principal, and what goes wrong becomes a page that says so.

    @page
    async def topics(request, access): ...

`access_of(request)` is for routes that answer with something else than a page. `ask` is for a part that a page can do
without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quorumlog.client.errors import AuthenticationFailed, QuorumlogError
from quorumlog.rpc.transport import RpcError
from quorumlog.watch.reading import reason
from quorumlog.watch.sample import Part, Sample
from quorumlog_console.access import Access
from quorumlog_console.console import console_of
from quorumlog_console.guard import LOGIN_PATH
from quorumlog_console.layout import render
from quorumlog_console.trouble import trouble

T = TypeVar("T")
Handler = Callable[[Request, Access], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


class NotLoggedIn(Exception):
    """The request has no access; `page` has answered it with the login already where it is used."""


def access_of(request: Request) -> Access:
    """Raises NotLoggedIn."""
    access = console_of(request).access_of(request)
    if access is None:
        raise NotLoggedIn
    return access


def page(handler: Handler) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        console = console_of(request)
        try:
            access = access_of(request)
        except NotLoggedIn:
            if console.asks is None:
                return trouble(request, 503, "The cluster does not answer", console.trouble)
            return to_login(request)
        try:
            async with asyncio.timeout(console.limits.answer_ms / 1000):
                return await handler(request, access)
        except AuthenticationFailed:
            access.is_refused = True
            return to_login(request)
        except TimeoutError:
            return trouble(request, 504, "The cluster took too long", "It did not answer within some seconds.", access)
        except (QuorumlogError, RpcError) as error:
            return trouble(request, 502, "The cluster refuses, or does not answer", reason(error), access)

    return endpoint


def to_login(request: Request) -> Response:
    if not console_of(request).asks:
        return trouble(request, 502, "The cluster refuses this console", "It does not take clients without a name.")
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"{LOGIN_PATH}?next={quote(path, safe='')}", 303)


async def sample_of(request: Request, access: Access) -> Sample:
    """The newest look. Raises QuorumlogError while there is none."""
    sample = await access.sample(console_of(request).limits.first_look_ms)
    if sample is None:
        raise QuorumlogError(access.trouble or "The console has not seen the cluster yet; load this page again soon.")
    return sample


async def ask(call: Callable[[], Awaitable[T]]) -> tuple[T | None, str]:
    """What the call gives, and ""; or None, and why. Raises AuthenticationFailed."""
    try:
        return await call(), ""
    except AuthenticationFailed:
        raise
    except (QuorumlogError, RpcError) as error:
        return None, reason(error)


def not_shown(sample: Sample, *parts: Part) -> list[str]:
    """A sentence for each of these parts that could not be read."""
    return [f"The {one.value} are not shown: {sample.missing[one]}." for one in parts if one in sample.missing]


__all__ = ["access_of", "ask", "not_shown", "page", "render", "sample_of"]
