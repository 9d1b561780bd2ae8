"""Takes the pictures of the README from a real cluster: `python docs/pictures/take.py [console] [top]`.

Three nodes with load and a group that is behind; one of them is killed with kill -9, and started again. `top.svg` is
what `quorumlog top` shows meanwhile, `console.png` what a browser shows of the console in between. It needs the extras
`dev` and Chromium (apt-get install chromium). Nothing in a picture is drawn by hand.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from screens import Line, Run, Screen, animated

from quorumlog.client.asynchronous import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.real_edges import SystemClock
from quorumlog.testing import LocalCluster
from quorumlog_cli.top.screen.app import TopApp
from quorumlog_cli.top.views import Watched
from quorumlog_cli.top.watching import Watching, client_options
from quorumlog_console.options import ConsoleOptions
from quorumlog_console.serving import ConsoleThread, address_of, listen, url_of

HERE = Path(__file__).parent
SIZE = (112, 28)  # columns, lines
EVERY_S = 1.0
CALM_S, KILLED_S, HEALTHY_S = 8, 14, 6  # how long each part of the recording takes
MOST_S = 120  # until the node has caught up
TOPICS = {"orders": 400, "payments": 250, "clicks": 900}  # records a second, of 200 bytes
VICTIM = 2
TITLE = "quorumlog top: node 2 is killed, its partitions get other leaders, it comes back and catches up"


@contextmanager
def loaded() -> Iterator[LocalCluster]:
    """Three nodes, writers to each topic, and a group that reads one of them more slowly than it grows."""
    folder = Path(tempfile.mkdtemp(prefix="pictures-"))
    ended = threading.Event()
    with LocalCluster(folder / "cluster") as cluster:
        for name in TOPICS:
            cluster.client.admin.create_topic(name, 6, 3)
        threads = [threading.Thread(target=_write, args=(cluster, ended)), *_readers(cluster, ended)]
        for thread in threads:
            thread.start()
        try:
            yield cluster
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    shutil.rmtree(folder)


def _write(cluster: LocalCluster, ended: threading.Event) -> None:
    with cluster.client.producer() as producer:
        for turn in range(1_000_000):
            if ended.wait(0.1):
                return
            for name, rate in TOPICS.items():
                for number in range(rate // 10):
                    producer.send(name, b"x" * 200, key=f"u-{turn * number % 97}")


def _readers(cluster: LocalCluster, ended: threading.Event) -> list[threading.Thread]:
    return [
        threading.Thread(target=_read, args=(cluster, ended, *what))
        for what in (("payments", "billing", 500), ("orders", "warehouse", 30), ("clicks", "report", 500))
    ]


def _read(cluster: LocalCluster, ended: threading.Event, topic: str, group: str, at_a_time: int) -> None:
    options: dict[str, Any] = {"max_poll_records": at_a_time, "auto_commit_interval_ms": 1_000}
    with cluster.client.consumer(topic, group=group, start="latest", **options) as consumer:
        while not ended.wait(0.1):
            try:
                consumer.poll(timeout_ms=200)
            except QuorumlogError:
                continue  # the next poll asks again


async def record(cluster: LocalCluster) -> str:
    """The SVG of what top shows while the victim is killed and comes back."""
    watched, screens, still = Watched(), [], 0

    async def explained(subject: str) -> list[str]:
        raise AssertionError(f"the picture explains nothing, and not {subject}")

    app = TopApp(watched, lambda told: _look(cluster.bootstrap_servers, watched, told), "local", explained)
    parts = {CALM_S: cluster.kill, CALM_S + KILLED_S: cluster.nodes.restart}
    healthy, second = 0, 0
    async with app.run_test(size=SIZE) as pilot:
        await asyncio.sleep(18)  # rates are over 15 s
        began_s = time.monotonic()
        while healthy < HEALTHY_S and second < MOST_S:
            if act := parts.get(second):
                threading.Thread(target=act, args=(VICTIM,)).start()
            await asyncio.sleep(max(0.0, began_s + second * EVERY_S - time.monotonic()))
            await pilot.pause()
            second += 1
            screens.append(Screen(second * EVERY_S, lines_of(app)))
            is_healthy = screens[-1].lines[0][0].text.startswith("healthy")
            healthy = healthy + 1 if is_healthy and second > CALM_S + KILLED_S else 0
            if second == CALM_S + KILLED_S - 1:
                still = second - 1
    return animated(screens, SIZE[0], still, TITLE)


async def _look(servers: str, watched: Watched, told: Callable[[], None]) -> None:
    admin = AsyncAdmin(bootstrap_servers=servers, **client_options({}))
    try:
        await Watching(admin, SystemClock(), watched, told).run(watched.every_ms)
    finally:
        await admin.close()


def lines_of(app: TopApp) -> tuple[Line, ...]:
    strips = app.screen._compositor.render_strips()
    return tuple(tuple(_run(segment.text, segment.style or Style()) for segment in strip) for strip in strips)


def _run(text: str, style: Style) -> Run:
    colour = "" if style.color is None or style.color.is_default else _css(style.color, True)
    background = "" if style.bgcolor is None or style.bgcolor.is_default else _css(style.bgcolor, False)
    if style.reverse:
        colour, background = background or "#292929", colour or "#c5c8c6"
    return Run(text, colour, background, bool(style.bold), bool(style.dim))


def _css(colour: Any, is_foreground: bool) -> str:
    found = colour.get_truecolor(SVG_EXPORT_THEME, foreground=is_foreground)
    return f"#{found.red:02x}{found.green:02x}{found.blue:02x}"


async def photograph(cluster: LocalCluster) -> bytes:
    """A PNG of the console's first page while a node is down."""
    from PIL import Image
    from playwright.async_api import async_playwright

    made = listen("127.0.0.1", 0)
    options = ConsoleOptions(client={"bootstrap_servers": cluster.bootstrap_servers, "default_api_timeout_ms": 10_000})
    thread = ConsoleThread(options)
    thread.start(made)
    try:
        await asyncio.sleep(20)
        cluster.kill(VICTIM)
        await asyncio.sleep(25)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = await browser.new_page(viewport={"width": 1280, "height": 900})
            await page.goto(url_of(address_of(made), options))
            await page.wait_for_load_state("networkidle")
            shot = await page.screenshot()
            await browser.close()
    finally:
        thread.stop()
        cluster.nodes.restart(VICTIM)
    small = BytesIO()
    Image.open(BytesIO(shot)).convert("RGB").quantize(128).save(small, "PNG", optimize=True)
    return small.getvalue()


def main(wanted: list[str]) -> None:
    with loaded() as cluster:
        if "top" in wanted or not wanted:
            (HERE / "top.svg").write_text(asyncio.run(record(cluster)))
        if "console" in wanted or not wanted:
            (HERE / "console.png").write_bytes(asyncio.run(photograph(cluster)))


if __name__ == "__main__":
    main(sys.argv[1:])
