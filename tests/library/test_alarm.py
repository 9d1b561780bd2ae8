"""The alarm: once per deadline, never before it, and as late as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from quorumlog.alarm import Alarm


class Bell:
    """A deadline that the test moves; it is gone once it was due."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(seed=1)
        self.loop = SimLoop(self.scheduler, "a")
        self.clock = SimClock(self.scheduler)
        self.deadline_ms: int | None = None
        self.rung: list[tuple[int, int]] = []
        self.alarm = Alarm(self.clock, lambda: self.deadline_ms, self._on_due)
        self.start_ms = self.clock.now_ms()

    def set(self, after_ms: int | None) -> None:
        """after_ms: from the start of the test."""
        self.deadline_ms = None if after_ms is None else self.start_ms + after_ms

        async def arm() -> None:
            self.alarm.arm()

        self.loop.run_until_complete(arm())

    def wait(self, length_ms: int) -> None:
        self.scheduler.run_for(length_ms * NS_PER_MS)

    def _on_due(self, now_ms: int, late_ms: int) -> None:
        self.rung.append((now_ms - self.start_ms, late_ms))
        self.deadline_ms = None


@pytest.fixture
def bell() -> Iterator[Bell]:
    made = Bell()
    yield made
    made.loop.kill()


def test_it_rings_once_at_the_deadline(bell: Bell) -> None:
    bell.set(100)
    bell.wait(99)
    assert bell.rung == []
    bell.wait(500)
    assert bell.rung == [(100, 0)]


def test_a_nearer_deadline_replaces_the_timer(bell: Bell) -> None:
    bell.set(100)
    bell.set(50)
    bell.wait(500)
    assert bell.rung == [(50, 0)]


def test_a_deadline_that_moved_away_is_found_when_the_timer_fires(bell: Bell) -> None:
    bell.set(100)
    bell.set(300)
    bell.wait(299)
    assert bell.rung == []
    bell.wait(500)
    assert bell.rung == [(300, 0)]


def test_a_deadline_that_is_gone_is_not_rung_for(bell: Bell) -> None:
    bell.set(100)
    bell.set(None)
    bell.wait(500)
    assert bell.rung == []


def test_a_deadline_in_the_past_is_due_at_once_and_not_late(bell: Bell) -> None:
    bell.wait(500)
    bell.set(100)
    bell.wait(1)
    assert bell.rung == [(500, 0)]


def test_it_says_how_late_it_is_after_the_loop_stood_still(bell: Bell) -> None:
    bell.set(100)
    bell.loop.pause()
    bell.wait(700)
    bell.loop.resume()
    bell.wait(1)
    [(_, late_ms)] = bell.rung
    assert late_ms >= 600


def test_a_cancelled_alarm_is_silent(bell: Bell) -> None:
    bell.set(100)
    bell.alarm.cancel()
    bell.wait(500)
    assert bell.rung == []
