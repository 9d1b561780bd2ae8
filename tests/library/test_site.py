"""The site that `./dev docs` builds: no warning, no dead link inside of it, and what a browser makes of its pages."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.console.browser import CHROMIUM, needs_browser

pytest.importorskip("furo", reason="Sphinx and its theme are in the extra docs")
ROOT = Path(__file__).resolve().parents[2]
BUILD_S = 540
PHONE_PX = 360  # how wide a telephone is
LOOKED_AT = (
    "index",
    "tutorial",
    "guides/operators",
    "guides/spark",
    "design",
    "comparison",
    "settings",
    "reference/commands",
)
MISSING_PICTURES = "[...document.images].filter(one => !one.naturalWidth).map(one => one.src)"
pytestmark = pytest.mark.timeout(BUILD_S + 60)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-P", "docs/reference_pages/build.py", "--to", str(to)],
        cwd=ROOT, capture_output=True, text=True, timeout=BUILD_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return to


class Page(HTMLParser):
    """targets: of its links, pictures and scripts. names: what a link to this page may point at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        self.targets += [given[name] for name in ("href", "src") if name in given]


def dead(site: Path) -> Iterator[str]:
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            found = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not found.exists() or (anchor and found in pages and anchor not in pages[found].names):
                yield f"{path.relative_to(site)}: {target}"


def test_no_link_of_the_site_is_dead(site: Path, tmp_path: Path) -> None:
    assert sorted(set(dead(site))) == []
    wrong = '<a href="b.html">x</a><a href="#c">x</a><img src="a.html"><p id="d"><a href="#d">x</a>'
    (tmp_path / "a.html").write_text(wrong)
    assert [one.split()[1] for one in dead(tmp_path)] == ["b.html", "#c"]


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """Its address: a search needs one."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def test_in_a_browser(served: str) -> None:
    """On a telephone in the dark: nothing wider than the screen, every picture is there, and the search finds."""
    needs_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": PHONE_PX, "height": 740}, color_scheme="dark")
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        for name in LOOKED_AT:
            page.goto(f"{served}{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE_PX, name
            assert page.evaluate("[...document.images].filter(one => !one.naturalWidth).map(one => one.src)") == [], (
                name
            )
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
            assert max(ground[:3]) < 80, (name, ground)
        page.goto(f"{served}search.html?q=unclean+election")
        page.wait_for_selector("#search-results li a")
        assert page.locator("#search-results li a").count() >= 3
        assert errors == []
        browser.close()
