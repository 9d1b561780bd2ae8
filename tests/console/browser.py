"""A real browser before the console of a real node, and checks of what people with other eyes and hands need."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quorumlog_console.options import ConsoleOptions
from quorumlog_console.serving import ConsoleThread, address_of, listen, url_of

if TYPE_CHECKING:
    from playwright.async_api import Browser

CHROMIUM = shutil.which("chromium")
CHECKS = Path(__file__).with_name("page_checks.js").read_text()
NO_BROWSER = "it needs Chromium (apt-get install chromium) and playwright (pip install playwright)"


def needs_browser() -> None:
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    pytest.importorskip("playwright", reason=NO_BROWSER)


@asynccontextmanager
async def open_console(options: ConsoleOptions) -> AsyncIterator[tuple[Browser, str]]:
    """The browser, and the console's address, which ends with a slash."""
    from playwright.async_api import async_playwright

    made = listen("127.0.0.1", 0)
    thread = ConsoleThread(options)
    thread.start(made)
    try:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            yield browser, url_of(address_of(made), options)
            await browser.close()
    finally:
        thread.stop()


async def faults_of(page: Any) -> list[str]:
    """What is wrong with a page, each with its element. Empty: nothing was found."""
    found: list[str] = await page.evaluate(CHECKS)
    return found
