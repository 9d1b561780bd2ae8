"""What a scrape costs, counted: time depends on the machine. The time itself is measured by `./dev bench console`."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog_broker.replicas.traffic import Traffic
from quorumlog_server.metrics import scrapes as module
from quorumlog_server.metrics import traffic
from quorumlog_server.metrics.bounded import BoundedLabels
from quorumlog_server.metrics.reading import Pace, Reading, Source
from quorumlog_server.metrics.scrapes import Scrapes
from quorumlog_server.metrics.text import page_of

TOPICS, PER_TOPIC = 100, 100


def busy_node(detail: str) -> Any:
    """Of 10,000 partitions."""
    found, topics = Traffic(), {}
    for number in range(TOPICS):
        topic_id = number.to_bytes(16, "big")
        topics[topic_id] = SimpleNamespace(name=f"topic-{number}")
        for index in range(PER_TOPIC):
            found.of((topic_id, index)).bytes_in = index
    registry = SimpleNamespace(traffic=found, image=SimpleNamespace(topics=topics))
    streams = SimpleNamespace(count=0, chunks=0, bytes=0)
    broker = SimpleNamespace(data_plane=SimpleNamespace(registry=registry), chunk_streams=streams)
    process = SimpleNamespace(metrics_detail=detail)
    clock = SimpleNamespace(wall_ms=lambda: 0, now_ms=lambda: 0)
    return SimpleNamespace(broker=broker, config=SimpleNamespace(process=process), edges=SimpleNamespace(clock=clock))


@pytest.mark.parametrize(("detail", "most_steps", "lines"), [("low", 12_000, 350), ("high", 170_000, 30_350)])
def test_steps_and_lines_at_ten_thousand_partitions(detail: str, most_steps: int, lines: int) -> None:
    """Partitions are gone over once; only details make lines of them."""
    out = Reading()
    traffic.collect(Source(busy_node(detail), Any, 0, 0), out)  # type: ignore[arg-type]
    page = page_of(traffic.SERIES, BoundedLabels().bound(out), out.pace)
    assert out.pace._steps <= most_steps
    assert page.count(b"\n") - 2 * len(traffic.SERIES) <= lines


def test_it_gives_way_each_millisecond() -> None:
    """By a clock that runs 20 us with each look at it: 32 steps of a reader take longer."""
    now_s, slept = 0.0, 0

    def look() -> float:
        nonlocal now_s
        now_s += 0.000_02
        return now_s

    def sleep(_seconds: float) -> None:
        nonlocal slept
        slept += 1

    out = Reading(pace=Pace(sleep, look))
    traffic.collect(Source(busy_node("low"), Any, 0, 0), out)  # type: ignore[arg-type]
    assert slept >= 10_000 // 32 // 52


class Built:
    """An area that notes the threads which read it."""

    SERIES = ()

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.fails = False

    def collect(self, _source: Source, out: Reading) -> None:
        self.threads.append(threading.get_ident())
        assert out.on_loop(threading.get_ident) == threading.main_thread().ident
        if self.fails:
            raise RuntimeError("it cannot be read")


def test_a_page_is_built_beside_the_loop_and_shared_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    area, now_s = Built(), 100.0
    monkeypatch.setattr(module, "AREAS", (area,))

    async def scenario() -> None:
        nonlocal now_s
        pages = Scrapes(busy_node("low"), Any, lambda: now_s)  # type: ignore[arg-type]
        await asyncio.gather(*(pages.page() for _ in range(5)))
        now_s += 0.9
        await pages.page()
        assert len(area.threads) == 1 and area.threads[0] != threading.get_ident()
        now_s += 0.1
        await pages.page()
        assert len(area.threads) == 2

    asyncio.run(scenario())


def test_a_page_of_now_is_begun_after_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who come while a page is being built share the next one; no two are built side by side."""
    area = Built()
    monkeypatch.setattr(module, "AREAS", (area,))

    async def scenario() -> None:
        pages = Scrapes(busy_node("low"), Any, lambda: 0.0)  # type: ignore[arg-type]
        await asyncio.gather(pages.page(), *(pages.page_now() for _ in range(5)))
        assert len(area.threads) == 2
        await pages.page_now()
        assert len(area.threads) == 3
        await pages.page()
        assert len(area.threads) == 3

    asyncio.run(scenario())


def test_a_failed_scrape_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    area = Built()
    area.fails = True
    monkeypatch.setattr(module, "AREAS", (area,))

    async def scenario() -> None:
        pages = Scrapes(busy_node("low"), Any, lambda: 0.0)  # type: ignore[arg-type]
        with pytest.raises(RuntimeError):
            await pages.page()
        area.fails = False
        assert (await pages.page()).status == 200

    asyncio.run(scenario())
