"""Every page of the console before a real node: what it shows, that text is escaped, what it refuses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from console_world import browse, options

from quorumlog.client.administration.users import SetPassword
from quorumlog.client.asynchronous import AsyncAdmin, AsyncProducer
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog_console.console import Console
from quorumlog_console.layout import NAVIGATION
from quorumlog_console.options import Limits
from tests.scenarios.one_node import LANE, RealNode

HOSTILE = "<script>alert(1)</script>\"'&../?#%2F"
BIG = "9223372036854775807"


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("console"))
    made.do(_prepare(made))
    yield made
    made.close()
    assert made.crashes == []


async def _prepare(at: RealNode) -> None:
    servers = str(at.node.addresses[LANE])
    async with AsyncAdmin(bootstrap_servers=servers) as admin:
        for name in ("orders", "refunds"):
            await admin.create_topic(name, 3, 1, {"retention.ms": BIG})
        async with AsyncProducer(bootstrap_servers=servers) as producer:
            for number in range(30):
                await producer.send("orders", b"%d" % number, partition=number % 3)
            await producer.flush()
        await admin.alter_group_offsets(HOSTILE, {("orders", 0): CommittedOffset(4)})
        await admin.alter_user_scram_credentials([SetPassword("ada", "a password of ada's")])


async def known(console: Console) -> None:
    async with asyncio.timeout(10):
        while console.asks is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def pages(at: RealNode, *paths: str) -> list[httpx.Response]:
    async def visit(browser: httpx.AsyncClient, console: Console) -> list[httpx.Response]:
        await known(console)
        return [await browser.get(path) for path in paths]

    return browse(at, options(at), visit)


def test_every_page_of_the_navigation_opens(at: RealNode) -> None:
    found = pages(at, *(href for _, href, _ in NAVIGATION))
    for answer, (_, href, name) in zip(found, NAVIGATION, strict=True):
        assert answer.status_code == 200, (href, answer.text)
        assert 'aria-current="page">' + name in answer.text
        assert "history goes back to" in answer.text and 'role="alert"' not in answer.text, href


def test_a_look_that_is_old_is_not_told_as_fine(at: RealNode) -> None:
    """A console said that every broker serves from a look 31 s old, because the next one was still waiting."""

    async def visit(browser: httpx.AsyncClient, console: Console) -> tuple[str, list[str]]:
        await known(console)
        fresh = (await browser.get("/")).text
        (access,) = [console._nobody]
        assert access is not None and access.past.newest is not None
        newest = access.past.newest
        access.past._newest = replace(newest, at_ms=newest.at_ms - 31_000)
        return fresh, [(await browser.get(href)).text for _, href, _ in NAVIGATION]

    fresh, old = browse(at, options(at, limits=Limits(look_every_ms=600_000)), visit)
    assert "Every broker serves" in fresh and "ago, and nothing since" not in fresh
    assert re.search(r"seen at <time>[^<]+</time>, [0-9.]+ m?s ago, in", fresh)
    assert all(re.search(r"was seen (3[1-9]|[4-9][0-9])\.[0-9] s ago, and nothing since", text) for text in old)
    assert "Every broker serves" not in old[0]


def test_pages_show_what_the_cluster_has(at: RealNode) -> None:
    overview, topics, topic, settings, rights = pages(
        at, "/", "/topics", "/topics/orders", "/settings?all=1", "/rights"
    )
    assert "1/1</b> brokers serve" in overview.text
    assert re.findall(r'href="/topics/([^"?]+)"', topics.text) == ["orders", "refunds"]
    assert re.search(r'retention.ms</code></th><td class="value"><code>' + BIG, topic.text), "to the last digit"
    assert "<td>this topic</td>" in topic.text
    assert '/topics/orders/messages"' in topic.text
    assert re.search("<td>ada</td><td>SCRAM-SHA-512, [0-9]+ iterations</td>", rights.text)
    assert "log.dirs" in settings.text and "the broker's file".replace("'", "&#39;") in settings.text


def test_a_group_named_as_html_is_text_everywhere(at: RealNode) -> None:
    async def visit(browser: httpx.AsyncClient, console: Console) -> list[httpx.Response]:
        await known(console)
        listed = await browser.get("/groups")
        href = re.search(r'href="(/groups/one\?id=[^"]+)"', listed.text)
        assert href is not None
        return [listed, await browser.get(href[1]), await browser.get("/"), await browser.get("/topics/orders")]

    for answer in browse(at, options(at), visit):
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        assert "&lt;script&gt;alert(1)" in answer.text
    unknown = pages(at, "/groups/one?id=<b>x</b>", "/topics/<b>x<%2Fb>", "/groups?q=<i>", "/topics?q=%22><i>")
    assert [one.status_code for one in unknown] == [404, 404, 200, 200]
    assert not any(re.search("<b>x|<i>", one.text) for one in unknown)


def topics_of(answer: httpx.Response) -> list[str]:
    return re.findall(r'href="/topics/([^"?]+)"', answer.text)


def test_a_list_is_searched_sorted_and_shown_in_parts(at: RealNode) -> None:
    found, none, sorted_down, bad = pages(
        at, "/topics?q=ORD", "/topics?q=nothing", "/topics?sort=offsets&desc=1", "/topics?sort=x&page=99&state=x"
    )
    assert topics_of(found) == ["orders"] and "1 of 2" in found.text
    assert topics_of(none) == [] and "No topic fits" in none.text
    assert topics_of(sorted_down) == ["orders", "refunds"] and 'aria-sort="descending"' in sorted_down.text
    assert topics_of(bad) == ["orders", "refunds"]


def test_nothing_but_reading_is_taken_and_headers_protect_the_browser(at: RealNode) -> None:
    async def visit(browser: httpx.AsyncClient, console: Console) -> None:
        await known(console)
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"):
            for path in ("/", "/topics/orders", "/static/console.css"):
                answer = await browser.request(method, path)
                assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD"), (method, path)
        assert (await browser.request("DELETE", "/login")).status_code == 405
        for path in ("/", "/none", "/static/console.js", "/topics/none"):
            headers = (await browser.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        head = await browser.head("/topics")
        assert head.status_code == 200 and head.content == b""
        page = (await browser.get("/")).text
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=|https?://", page), "nothing inline, no foreign host"

    browse(at, options(at), visit)


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1:8080", True), ("localhost:8080", True), ("[::1]:8080", True), ("10.0.0.7", True),
        ("LOCALHOST", True), ("console.example", True), ("evil.example:8080", False),
        ("localhost.evil.example", False), ("", False),
        ("127.0.0.1.evil.example", False),
    ],
)  # fmt: skip
def test_only_own_names_are_answered(at: RealNode, host: str, is_own: bool) -> None:
    async def visit(browser: httpx.AsyncClient, console: Console) -> int:
        await known(console)
        return (await browser.get("/static/icon.svg", headers={"host": host})).status_code

    assert browse(at, options(at, host_names=("console.example",)), visit) == (200 if is_own else 421)


def test_without_a_cluster_the_page_says_so() -> None:
    async def run() -> None:
        from quorumlog_console.app import make_app
        from quorumlog_console.options import ConsoleOptions

        app = make_app(ConsoleOptions(client={"bootstrap_servers": "127.0.0.1:1", "default_api_timeout_ms": 300}))
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as browser,
        ):
            answer = await browser.get("/topics")
            assert answer.status_code == 503 and "does not answer" in answer.text

    asyncio.run(run())


def test_causes_are_those_of_check_with_their_evidence(at: RealNode) -> None:
    """A group without members that is behind. Its name is a client's."""

    async def visit(browser: httpx.AsyncClient, console: Console) -> str:
        await known(console)
        async with asyncio.timeout(30):
            while 'data-cause="' not in (text := (await browser.get("/causes")).text):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        return text

    text = browse(at, options(at), visit)
    assert 'data-cause="group.no-members"' in text and 'data-severity="notice"' in text
    assert "NO MEMBERS" in text and "DescribeGroups" in text and "quorumlog group describe" in text
    assert "<script>alert" not in text


def test_a_console_ends_while_it_looks_for_causes(at: RealNode) -> None:
    """The thread that reads waits for two looks at what is behind; nobody waits for it."""

    async def visit(browser: httpx.AsyncClient, console: Console) -> float:
        await known(console)
        await browser.get("/causes")
        return asyncio.get_running_loop().time()

    began = browse(at, options(at), visit)
    assert at.do(_time()) - began < 5


async def _time() -> float:
    return asyncio.get_running_loop().time()
