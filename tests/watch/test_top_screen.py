"""The screen of `quorumlog top`, driven by keys, over samples of a cluster that nobody runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from watch_samples import BEGAN_MS, group, sample, topic

from quorumlog.client.errors import AuthenticationFailed
from quorumlog.watch.sample import Broker, Directory, GroupOffset, Sample
from quorumlog_cli.top.screen.app import PANELS, TopApp
from quorumlog_cli.top.screen.listing import Listing
from quorumlog_cli.top.views import Watched

SMALL, LARGE = (80, 24), (120, 40)


def look(n: int) -> Sample:
    """The n-th look, 10 s after the one before: many topics, one of them broken."""
    topics = [topic(f"topic-{index:02}", index * 100 * n, size=index * n) for index in range(30)]
    broken = topic("broken", n, isr=(1, 2))
    behind = group("billing", GroupOffset(topic="topic-07", partition=0, committed=70, end=700 * n))
    made = sample(n * 10_000, *topics, broken, groups=(behind, group("idle", state="Empty")), epoch=n)
    disk = Directory(path="/data/n1", total_bytes=100, usable_bytes=4, size_bytes=60, replicas=31)
    others = made.brokers[1:]
    return replace(made, brokers=(Broker(node_id=1, host="b1", port=9092, directories=(disk,)), *others))


class Cluster:
    """Looks come when the test says so."""

    def __init__(self) -> None:
        self.watched = Watched()
        self.told: Callable[[], None] = lambda: None
        self.fails: asyncio.Future[None] | None = None
        self.number = 0
        self.asked: list[str] = []
        self.answers = asyncio.Event()
        self.why = ["it is under-replicated", "  do    quorumlog broker list", "named \x1b[2J"]

    async def explain(self, subject: str) -> list[str]:
        self.asked.append(subject)
        await self.answers.wait()
        if not self.why:
            raise RuntimeError("nobody answers")
        return self.why

    async def run(self, told: Callable[[], None]) -> None:
        self.told, self.fails = told, asyncio.get_running_loop().create_future()
        await self.fails

    def look(self, count: int = 1) -> None:
        for _ in range(count):
            self.number += 1
            self.watched.add(look(self.number))
        self.told()

    def now_ms(self) -> int:
        return BEGAN_MS + self.number * 10_000


def on_screen(size: tuple[int, int], test: Callable[[Cluster, TopApp, Any], Awaitable[None]]) -> TopApp:
    cluster = Cluster()
    app = TopApp(cluster.watched, cluster.run, "local", cluster.explain, cluster.now_ms)

    async def main() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await test(cluster, app, pilot)

    asyncio.run(main())
    return app


def lines_of(app: TopApp) -> list[str]:
    """What the screen shows."""
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


def line_with(app: TopApp, text: str) -> str:
    return next((line for line in lines_of(app) if text in line), "")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x40"])
def test_every_panel_fits_into_the_screen(size: tuple[int, int]) -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        assert "local  asking" in lines_of(app)[0] and line_with(app, "no answer yet")
        cluster.look(3)
        await pilot.pause()
        lines = lines_of(app)
        assert len(lines) == size[1] and {len(line) for line in lines} == {size[0]}
        assert lines[0].startswith("1 under-replicated · 1 disk nearly full")
        assert "quorum · leader 1 epoch 3" in lines[1] and "brokers 1! · 3" in lines[1]
        assert "1*" in line_with(app, "1*") and "96%" in line_with(app, "96%")
        assert line_with(app, "topics 1! · 31 · by rate") and line_with(app, "groups · 2 · by lag")
        assert "290" in line_with(app, "topic-29") and "2.0k" in line_with(app, "billing")
        assert line_with(app, "events (1 h)") and "q quit" in lines[-1]
        shown = [panel for panel in PANELS if app.query_one(f"#{panel}").display]
        assert shown == [panel for panel in PANELS if panel != "elections" or size == LARGE]

    on_screen(size, check)


def test_rows_keep_their_choice_and_open() -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        cluster.look(2)
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert line_with(app, "topic topic-27 · 1 partitions") and "5400" in line_with(app, "1,2,3")
        cluster.look()
        await pilot.pause()
        assert "8100" in line_with(app, "1,2,3")  # what is open is renewed, too
        await pilot.press("escape", "end")
        topics = app.query_one("#topics", Listing)
        assert topics.chosen == 30 and topics.table.rows[30].key == "topic-00"
        assert line_with(app, "topic-00")  # it was scrolled to
        await pilot.press("r")
        assert topics.chosen == 0 and topics.table.rows[0].key == "topic-00"
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert line_with(app, "group billing · Stable · lag 2.0k") and "topic-07" in line_with(app, "nobody")
        await pilot.press("q", "3", "enter")
        await pilot.pause()
        assert "online" in line_with(app, "/data/n1") and line_with(app, "broker 1 1! · serving · b1:9092")

    on_screen(SMALL, check)


def test_a_filter_chooses_and_the_first_line_still_counts_all() -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        cluster.look(2)
        await pilot.press("slash", *"pic-2")
        await pilot.pause()
        assert line_with(app, "topics 1! · 10 of 31 with 'pic-2' · by rate")
        assert not line_with(app, "broken ") and lines_of(app)[0].startswith("1 under-replicated")
        await pilot.press("enter", "s")
        assert app.query_one("#topics", Listing).has_focus and line_with(app, "10 of 31 with 'pic-2' · by size")
        await pilot.press("escape")
        await pilot.pause()
        assert line_with(app, "topics 1! · 31 · by size")

    on_screen(SMALL, check)


def test_a_held_picture_stands_and_goes_on() -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        cluster.look(2)
        await pilot.press("p")
        cluster.look()
        await pilot.pause()
        assert lines_of(app)[0].startswith("PAUSED (space goes on)") and line_with(app, "epoch 2")
        await pilot.press("space")
        await pilot.pause()
        assert line_with(app, "epoch 3") and not line_with(app, "PAUSED")

    on_screen(SMALL, check)


def test_one_panel_alone_and_the_help() -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        cluster.look(2)
        await pilot.press("z")
        await pilot.pause()
        assert not line_with(app, "quorum · leader") and line_with(app, "topic-12")
        await pilot.press("z")
        await pilot.pause()
        assert line_with(app, "quorum · leader")
        await pilot.press("question_mark")
        await pilot.pause()
        assert line_with(app, "hold the picture") and not line_with(app, "quorum · leader")
        await pilot.press("escape")
        await pilot.pause()
        assert line_with(app, "quorum · leader")

    on_screen(SMALL, check)


@pytest.mark.parametrize(
    ("panel", "subject"), [("topics", "topic/topic-29"), ("groups", "group/billing"), ("brokers", "broker/1"),
                           ("quorum", "quorum")]
)  # fmt: skip
def test_a_row_is_explained(panel: str, subject: str) -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        cluster.look(2)
        await pilot.pause()
        app.query_one(f"#{panel}", Listing).focus()
        await pilot.press("e")
        await pilot.pause()
        assert cluster.asked == [subject] and line_with(app, f"{subject}: reading")
        cluster.answers.set()
        await pilot.pause()
        assert line_with(app, "it is under-replicated") and line_with(app, "do    quorumlog broker list")
        assert line_with(app, r"named \x1b[2J") and not line_with(app, "reading")
        await pilot.press("escape")
        await pilot.pause()
        assert line_with(app, "quorum · leader") and len(lines_of(app)) == SMALL[1]

    on_screen(SMALL, check)


def test_an_explanation_that_cannot_be_read_says_why_and_can_be_left_early() -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        cluster.look(2)
        cluster.why = []
        await pilot.press("e")
        await pilot.press("escape")
        await pilot.pause()
        assert line_with(app, "quorum · leader"), "left while it was read"
        cluster.answers.set()
        await pilot.press("e")
        await pilot.pause()
        assert line_with(app, "it cannot be explained: nobody answers")

    on_screen(SMALL, check)


def test_events_are_not_explained() -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        cluster.look(2)
        app.query_one("#events", Listing).focus()
        await pilot.press("e")
        await pilot.pause()
        assert not cluster.asked

    on_screen(SMALL, check)


def test_a_lost_cluster_stays_in_sight_with_its_age() -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        cluster.look(2)
        cluster.watched.trouble = "no broker answered"
        cluster.told()
        await pilot.pause()
        assert lines_of(app)[0].startswith("NO ANSWER for 0s, asking on  no broker answered")
        assert line_with(app, "topic-29")
        cluster.look()
        await pilot.pause()
        assert lines_of(app)[0].startswith("1 under-replicated")

    on_screen(SMALL, check)


def test_a_refusal_ends_it_and_is_told() -> None:
    error = AuthenticationFailed("no such user")

    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        assert cluster.fails is not None
        cluster.fails.set_exception(error)
        await pilot.pause()

    assert on_screen(SMALL, check).return_value is error


def test_a_panel_that_is_smaller_than_its_rows_scrolls_with_the_choice() -> None:
    async def check(cluster: Cluster, app: TopApp, pilot: Any) -> None:
        cluster.look(2)
        topics = app.query_one("#topics", Listing)
        for _ in range(9):
            await pilot.press("j")
            await pilot.pause()
            assert line_with(app, f"{topics.table.rows[topics.chosen].key} "), topics.chosen
        await pilot.press("home")
        await pilot.pause()
        assert topics.chosen == 0 and line_with(app, "topic-29") and line_with(app, "TOPIC ")

    on_screen(SMALL, check)
