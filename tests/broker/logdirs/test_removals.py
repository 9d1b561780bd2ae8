"""How long the removal of a deleted partition pauses between its steps."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_broker.logdirs.removals import PAUSE_PER_STEP, REMOVAL_PAUSE_MAX_MS, REMOVAL_PAUSE_MS, Removals
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.segment.retired import Retired, RetiredSegment
from quorumlog_storage.writer.worker import WorkerFull
from quorumlog_storage.writer.writer import Outcome
from tests.rules import rule


class Loop:
    """A clock that the test sets, and timers that it can read."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, then: Callable[[], None]) -> Mock:
        self.timers.append((delay_s, then))
        timer = Mock()
        timer.cancel = self.timers.clear
        return timer


class Queue:
    """A directory whose reader threads take steps; the test decides how each ends."""

    is_usable = True

    def __init__(self) -> None:
        self.retired = Retired()
        partitions = SimpleNamespace(free=lambda *_: True, retired=self.retired, disk=None)
        self.directory = SimpleNamespace(partitions=partitions, worker=self)
        self.answers: list[Callable[[Outcome], None]] = []
        self.is_full = False
        self.failures: list[Exception] = []

    def read(self, _work: Any, answer: Callable[[Outcome], None]) -> None:
        if self.is_full:
            raise WorkerFull("/d", "reads", 1)
        self.answers.append(answer)

    def fail(self, cause: Exception) -> None:
        self.failures.append(cause)
        self.is_usable = False


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    loop = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return loop


@pytest.mark.parametrize(
    ("step_ms", "pause_ms"),
    [
        (0, REMOVAL_PAUSE_MS),
        (2, REMOVAL_PAUSE_MS),
        (20, 20 * PAUSE_PER_STEP),
        (60_000, REMOVAL_PAUSE_MAX_MS),
    ],
)
def test_a_pause_grows_with_the_step_up_to_a_bound(loop: Loop, step_ms: int, pause_ms: int) -> None:
    queue = Queue()
    removals = Removals(cast(DirectoryQueue, queue))
    removals.now("a")
    removals.now("b")
    assert len(queue.answers) == 1, "two at a time"
    loop.now_s += step_ms / 1000
    queue.answers.pop()(Outcome(value=False))
    [(delay_s, then)] = loop.timers
    assert delay_s * 1000 == pytest.approx(pause_ms) and not queue.answers
    then()
    queue.answers.pop()(Outcome(value=True))
    assert len(queue.answers) == 1, "the next one waits for nothing"
    removals.close()
    queue.answers.pop()(Outcome(value=False))
    removals.later("c", 1.0)
    assert not loop.timers and not queue.answers, "a step was begun after the end"


@rule("storage 8.5")
def test_retired_segments_wait_for_their_delay(loop: Loop) -> None:
    queue = Queue()
    removals = Removals(cast(DirectoryQueue, queue))
    for path, delay_ms in (("/d/t-0/0.log.deleted", 60_000), ("/d/t-0/9.log.deleted", 60_000), ("/d/u-0/0", 0)):
        queue.retired._waiting.append(RetiredSegment(path, delay_ms))
    removals.take_retired()
    assert sorted(delay_s for delay_s, _ in loop.timers) == [0, 60] and not queue.answers
    loop.timers[0][1]()
    assert len(queue.answers) == 1


def test_a_step_waits_where_the_readers_have_no_room(loop: Loop) -> None:
    queue = Queue()
    removals = Removals(cast(DirectoryQueue, queue))
    queue.is_full = True
    removals.now("a")
    queue.is_full = False
    [(_, again)] = loop.timers
    again()
    assert len(queue.answers) == 1


def test_a_directory_that_takes_no_changes_fails_and_is_left_alone(loop: Loop) -> None:
    queue = Queue()
    removals = Removals(cast(DirectoryQueue, queue))
    removals.now("a")
    removals.now("b")
    queue.answers.pop()(Outcome(error=DiskError("/d/a", "unlink", errno.EROFS)))
    assert len(queue.failures) == 1 and not queue.answers
