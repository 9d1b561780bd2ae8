"""Messages in Chromium: digits are read back, filtered by and copied to the last byte; a burst in a tail.

`test_digits` is quick; the rest is for the night (tests/parts.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from browser import faults_of, needs_browser, open_console
from console_world import options
from test_console_browser import LOOKS, watched
from test_console_messages import ID, VALUE, prepare

from quorumlog.client.asynchronous import AsyncProducer
from tests.scenarios.one_node import LANE, RealNode

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

PATHS = (
    "topics/numbers/messages", "topics/mixed/messages?uncommitted=1", "topics/numbers/messages?where=wrong",
    "topics/numbers/messages/one?partition=0&offset=0", "topics/numbers/messages/one?partition=0&offset=3",
    "topics/numbers/messages/one?partition=0&offset=99", "topics/live/messages/tail", "topics/empty/messages",
)  # fmt: skip


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    needs_browser()
    made = RealNode(tmp_path_factory.mktemp("messages"))
    made.do(prepare(str(made.node.addresses[LANE])))
    yield made
    made.close()
    assert made.crashes == []


def test_digits_are_read_back_filtered_by_and_copied(at: RealNode) -> None:
    async def do(browser: Browser, url: str) -> None:
        context = await browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        page = await context.new_page()
        said = watched(page)
        await page.goto(url + "topics/numbers/messages")
        row = page.locator("table.messages > tbody > tr").last
        await row.locator("summary").click()
        shown = await row.locator("pre").inner_text()
        assert [line.strip() for line in shown.splitlines()][1:5] == [
            f'"id": {ID},', '"far": 1e400,', '"no": NaN,', f'"long": 0.{"1" * 29}7,',
        ]  # fmt: skip
        digits = shown.splitlines()[1].split(": ")[1].rstrip(",")
        await page.get_by_label("Condition", exact=True).fill(f"$.id = {digits}")
        await page.get_by_label("Key is").fill(await row.locator("td.key").inner_text())
        await page.keyboard.press("Enter")
        await page.wait_for_url("**where=*")
        assert await page.locator("table.messages > tbody > tr").count() == 1
        await page.locator("table.messages a").first.click()
        await page.wait_for_url("**/messages/one?*")
        for button, want in (("key", ID), ("value", VALUE)):
            line = page.locator("p.actions", has=page.locator(f'[data-copy*="part={button}"]'))
            await line.get_by_role("button", name="Copy").click()
            await line.locator("[role=status]", has_text="copied").wait_for()
            assert await page.evaluate("navigator.clipboard.readText()") == want
        assert said == [] and await faults_of(page) == []

    at.do(_browse(at, do))


async def _browse(at: RealNode, do: Any) -> None:
    async with open_console(options(at)) as (browser, url):
        await do(browser, url)


def test_a_burst_and_aborted_records_in_a_live_tail(at: RealNode) -> None:
    async def do(browser: Browser, url: str) -> None:
        page = await browser.new_page()
        said = watched(page)
        await page.goto(url + "topics/live/messages/tail")
        await page.locator("#state", has_text="Live.").wait_for()
        servers = str(at.node.addresses[LANE])
        async with AsyncProducer(bootstrap_servers=servers, transactional_id="aborts") as producer:
            await producer.begin()
            for number in range(1_000):
                await producer.send("live", b"aborted %d" % number, partition=0)
            await producer.flush()
            await producer.abort()
        async with AsyncProducer(bootstrap_servers=servers) as producer:
            for number in range(5_000):
                await producer.send("live", f'{{"n": {ID}{number:04d}}}'.encode(), partition=number % 2)
            await producer.flush()
            shown, skipped = await _counts(page, 5_000)
            assert skipped > 0 and shown > 0
            texts = await page.locator("table.messages > tbody summary").all_inner_texts()
            assert f"{ID}4999" in texts[0] + texts[1] and not any("aborted" in text for text in texts)
            numbers = [int(text.split(": ")[1].rstrip("}")) for text in texts]
            for parity in (0, 1):
                own = [number for number in numbers if number % 2 == parity]
                assert own == sorted(set(own), reverse=True)
            await page.get_by_role("button", name="Pause").click()
            for number in range(7):
                await producer.send("live", b"while paused %d" % number, partition=0)
            await producer.flush()
            await asyncio.sleep(1)
            assert await page.get_by_text("while paused").count() == 0
            await page.get_by_role("button", name="Go on").click()
            await _counts(page, 5_007)
            assert await page.locator("summary", has_text="while paused").count() == 7
        assert said == [] and await faults_of(page) == []

    at.do(_browse(at, do))


async def _counts(page: Page, total: int) -> tuple[int, int]:
    """Shown and skipped, once they are so many together."""
    async with asyncio.timeout(30):
        while True:
            words = (await page.locator("#state").inner_text()).replace(",", "").split()
            shown, skipped = int(words[words.index("shown") - 1]), int(words[words.index("skipped.") - 1])
            if shown + skipped >= total:
                assert shown + skipped == total
                return shown, skipped
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_of_messages_can_be_seen_by_all(at: RealNode, look: str) -> None:
    async def do(browser: Browser, url: str) -> None:
        scheme, width, height = LOOKS[look]
        context = await browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
        page = await context.new_page()
        for path in PATHS:
            await page.goto(url + path)
            for summary in await page.locator("table.messages summary").all():
                await summary.click()
            assert await faults_of(page) == [], path

    at.do(_browse(at, do))
