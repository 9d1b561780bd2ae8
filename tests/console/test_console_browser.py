"""The console in Chromium: it opens, filters by keys, escapes, refuses; contrast, labels and phone width of every page.

`test_in_a_browser` is quick; the pages one by one, in the dark, and on a phone are for the night (tests/parts.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from browser import faults_of, needs_browser, open_console
from console_world import options

from quorumlog.client.administration.users import SetPassword
from quorumlog.client.asynchronous import AsyncAdmin, AsyncProducer
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog_console.layout import NAVIGATION
from tests.scenarios.one_node import LANE, ProtectedNode, RealNode

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"
PATHS = (*(href for _, href, _ in NAVIGATION), "/topics/orders", "/none", "/settings?all=1", "/transactions?hanging=1")
FAULTS = (
    "contrast 2.85", "no name", "no text for an image", "without its scope", "two elements are x", "no language",
    "not one h1", "wider than",
)  # fmt: skip
LOOKS = {
    "light": ("light", 1280, 800),
    "dark": ("dark", 1280, 800),
    "phone": ("light", 360, 740),
    "dark phone": ("dark", 360, 740),
}


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    needs_browser()
    made = RealNode(tmp_path_factory.mktemp("browser"))
    made.do(_prepare(made))
    yield made
    made.close()
    assert made.crashes == []


async def _prepare(at: RealNode) -> None:
    servers = str(at.node.addresses[LANE])
    async with AsyncAdmin(bootstrap_servers=servers) as admin:
        for name in ("orders", "refunds", "returns"):
            await admin.create_topic(name, 2, 1)
        async with AsyncProducer(bootstrap_servers=servers) as producer:
            for number in range(10):
                await producer.send("orders", b"%d" % number, partition=0)
            await producer.flush()
        for name in (HOSTILE, "billing"):
            await admin.alter_group_offsets(name, {("orders", 0): CommittedOffset(4)})


def watched(page: Page) -> list[str]:
    """What its console and its scripts complain of."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


async def _filter_by_keys(page: Page, url: str) -> None:
    await page.goto(url)
    await page.keyboard.press("g")
    await page.keyboard.press("t")
    await page.wait_for_url(url + "topics")
    await page.keyboard.press("/")
    await page.keyboard.type("re")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/topics?*q=re*")
    assert await page.locator("tbody th a").all_inner_texts() == ["refunds", "returns"]
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    assert await page.locator("tr.here").inner_text() == await page.locator("tbody tr").nth(1).inner_text()
    await page.keyboard.press("Enter")
    await page.wait_for_url(url + "topics/returns")
    await page.keyboard.press("?")
    assert await page.locator("dialog").is_visible()


async def _escapes(page: Page, url: str) -> None:
    for path in ("groups", "", "topics/orders"):
        await page.goto(url + path)
        await page.get_by_role("link", name=HOSTILE).first.wait_for()
    await page.get_by_role("link", name=HOSTILE).click()
    assert HOSTILE in await page.locator("h1").inner_text()
    assert await page.title() == f"Group {HOSTILE} · quorumlog"
    assert await page.locator("main img").count() == 0


async def _refuses(page: Page, url: str) -> None:
    await page.goto(url)
    for method in ("POST", "PUT", "DELETE"):
        status = await page.evaluate("async (method) => (await fetch('/topics', {method})).status", method)
        assert status == 405, method


def test_in_a_browser(at: RealNode) -> None:
    async def run() -> None:
        async with open_console(options(at)) as (browser, url):
            page = await browser.new_page()
            said = watched(page)
            await _filter_by_keys(page, url)
            await _escapes(page, url)
            for path in ("", "topics", "topics/orders", "groups"):
                await page.goto(url + path)
                assert await faults_of(page) == [], path
            assert said == []
            await _refuses(page, url)

    at.do(run())


def test_what_the_checks_of_pages_find(at: RealNode) -> None:
    bad = """<html><body><h1>a</h1><h1>b</h1><main><p style="color:#999">pale</p><a href="/"></a><img src="/x">
    <input><table><tr><th>x</th></tr></table><i id=x></i><i id=x></i><div style="width:5000px">wide</div></main>"""

    async def run() -> list[str]:
        async with open_console(options(at)) as (browser, _):
            page = await browser.new_page()
            await page.set_content(bad)
            return await faults_of(page)

    found = at.do(run())
    for what in FAULTS:
        assert any(what in one for one in found), what


async def _open(browser: Browser, look: str) -> Any:
    scheme, width, height = LOOKS[look]
    return await browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})  # type: ignore[arg-type]


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_can_be_read_in_every_look(at: RealNode, look: str) -> None:
    async def run() -> None:
        async with open_console(options(at)) as (browser, url):
            page = await (await _open(browser, look)).new_page()
            for path in PATHS:
                await page.goto(url.rstrip("/") + path)
                assert await faults_of(page) == [], path

    at.do(run())


def test_a_page_loads_itself_again(at: RealNode) -> None:
    async def run() -> None:
        async with open_console(options(at)) as (browser, url):
            page = await browser.new_page()
            await page.goto(url + "topics")
            async with AsyncAdmin(bootstrap_servers=str(at.node.addresses[LANE])) as admin:
                await admin.create_topic("suddenly", 1, 1)
            await page.get_by_role("link", name="suddenly").wait_for(timeout=20_000)

    at.do(run())


def test_a_person_logs_in(tmp_path_factory: pytest.TempPathFactory) -> None:
    needs_browser()
    from test_console_login import BY_PASSWORD, PASSWORD, SECURED

    at = ProtectedNode(tmp_path_factory.mktemp("browser-login"), SECURED)

    async def run() -> None:
        async with AsyncAdmin(bootstrap_servers=str(at.node.addresses[LANE])) as admin:
            await admin.alter_user_scram_credentials([SetPassword("ada", PASSWORD)])
        given = options(at, "SECURE", client={**BY_PASSWORD, "sasl_mechanism": "SCRAM-SHA-512"})
        async with open_console(given) as (browser, url):
            page = await browser.new_page()
            await page.goto(url + "topics")
            assert await faults_of(page) == []
            for password, lands in (("wrong", "login"), (PASSWORD, "topics")):
                await page.get_by_label("User").fill("ada")
                await page.get_by_label("Password").fill(password)
                await page.get_by_role("button", name="Log in").click()
                await page.wait_for_load_state()
                assert page.url == url + lands
            assert await page.locator(".user").inner_text() == "User:ada"
            await page.get_by_role("link", name="Log out").click()
            await page.goto(url + "groups")
            assert "/login" in page.url

    at.do(run())
    at.close()
