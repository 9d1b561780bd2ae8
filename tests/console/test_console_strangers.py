"""What a stranger sends to the console: no link, cookie or error of theirs comes back. There is no cluster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

import httpx
import pytest

from quorumlog_console.app import make_app
from quorumlog_console.options import ConsoleOptions

HERE = "http://127.0.0.1:8080"
BY_PASSWORD = {"bootstrap_servers": "127.0.0.1:1", "security_protocol": "SASL_PLAINTEXT"}


def asked(ask: Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]) -> httpx.Response:
    async def run() -> httpx.Response:
        app = make_app(ConsoleOptions(client=BY_PASSWORD))
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 50_000))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url=HERE) as browser,
        ):
            return await ask(browser)

    return asyncio.run(run())


@pytest.mark.parametrize("path", ["//evil.example/", "///evil.example/", "/%5Cevil.example/", "/%2F/evil.example"])
def test_a_page_that_is_not_there_links_to_nobody_else(path: str) -> None:
    answer = asked(lambda browser: browser.get(HERE + path))
    links = re.findall(r'(?:href|src|action)="(.*?)"', answer.text)
    assert answer.status_code == 404 and links
    assert not [link for link in links if link.startswith(("//", "/\\")) or not link.startswith(("/", "#"))]


@pytest.mark.parametrize("cookie", [r'"a\012Set-Cookie: b"', r'"\377\000"', "short", "0" * 65])
def test_a_cookie_that_is_not_the_consoles_is_not_sent_back(cookie: str) -> None:
    answer = asked(lambda browser: browser.get("/login", headers={"cookie": f"quorumlog_form={cookie}"}))
    (found,) = answer.headers.get_list("set-cookie")
    assert re.match(r"quorumlog_form=[0-9a-f]{64};", found)


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "null", "", "http://127.0.0.1:8080@evil.example"])
def test_a_form_of_an_origin_that_is_none_is_refused(origin: str) -> None:
    async def ask(browser: httpx.AsyncClient) -> httpx.Response:
        form = dict(re.findall(r'name="(token|next)" value="(.*?)"', (await browser.get("/login")).text))
        return await browser.post("/login", data=form | {"user": "u", "password": "p"}, headers={"origin": origin})

    assert asked(ask).status_code == 403
