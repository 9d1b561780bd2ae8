"""How long the removal of a deleted partition pauses between its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.logdirs.log_directory import DirectoryQueue
from broker.logdirs.removals import PAUSE_PER_STEP, REMOVAL_PAUSE_MAX_MS, REMOVAL_PAUSE_MS, Removals


class Loop:
    """A clock that the test sets, and timers that it can read."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, then: Callable[[], None]) -> SimpleNamespace:
        self.timers.append((delay_s, then))
        return SimpleNamespace(cancel=self.timers.clear)


class Queue:
    """Takes a step; the test decides how it ends."""

    def __init__(self) -> None:
        self.directory = SimpleNamespace(partitions=SimpleNamespace(free=lambda *_: True))
        self.done: list[Callable[[bool], None]] = []

    def run_in_background(self, _work: Any, *, done: Callable[[bool], None], failed: Any) -> None:
        self.done.append(done)


@pytest.mark.parametrize(
    ("step_ms", "pause_ms"),
    [
        (0, REMOVAL_PAUSE_MS),
        (2, REMOVAL_PAUSE_MS),
        (20, 20 * PAUSE_PER_STEP),
        (60_000, REMOVAL_PAUSE_MAX_MS),
    ],
)
def test_a_pause_grows_with_the_step_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, step_ms: int, pause_ms: int
) -> None:
    loop, queue = Loop(), Queue()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    removals = Removals(cast(DirectoryQueue, queue))
    removals.now("a")
    removals.now("b")
    assert len(queue.done) == 1, "two at a time"
    loop.now_s += step_ms / 1000
    queue.done.pop()(False)
    [(delay_s, then)] = loop.timers
    assert delay_s * 1000 == pytest.approx(pause_ms) and not queue.done
    then()
    queue.done.pop()(True)
    assert len(queue.done) == 1, "the next one waits for nothing"
    removals.close()
    queue.done.pop()(False)
    removals.later("c", 1.0)
    assert not loop.timers and not queue.done, "a step was begun after the end"
