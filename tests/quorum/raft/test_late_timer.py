"""LateTimer: on time, replaced, and after a stall."""

from __future__ import annotations

from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import Scheduler
from quorumlog_quorum.node.raft_loop import GRACE_MS, STALL_MS, LateTimer


class Stage:
    """A clock that a stall moves forward while nothing runs, and a record of when the timer fired."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(1)
        self.loop = SimLoop(self.scheduler, "n")
        self.stalled_ms = 0
        self.due: list[int] = []
        self.timer = LateTimer(self, lambda: self.due.append(self.now_ms()))

    def now_ms(self) -> int:
        return self.scheduler.now_ns // 1_000_000 + self.stalled_ms

    def wall_ms(self) -> int:
        return self.now_ms()

    def set(self, deadline_ms: int | None) -> None:
        self.loop.deliver(self.timer.set, deadline_ms)
        self.run(0)

    def run(self, duration_ms: int) -> None:
        self.scheduler.run_for(duration_ms * 1_000_000)


def test_it_fires_once_at_its_time() -> None:
    stage = Stage()
    stage.set(50)
    stage.run(49)
    assert stage.due == []
    stage.run(100)
    assert stage.due == [50]


def test_a_new_deadline_replaces_the_old_one_and_none_ends_it() -> None:
    stage = Stage()
    stage.set(50)
    stage.set(80)
    stage.run(70)
    stage.set(None)
    stage.run(100)
    assert stage.due == []


def test_after_a_stall_messages_go_first() -> None:
    stage = Stage()
    stage.set(50)
    stage.stalled_ms = 500
    stage.run(50)
    assert stage.due == []
    stage.set(2_000)  # a message came, and the deadline moved
    stage.run(GRACE_MS + 1)
    assert stage.due == []


def test_after_a_stall_without_messages_it_fires_a_moment_later() -> None:
    stage = Stage()
    stage.set(50)
    stage.stalled_ms = STALL_MS + 1
    stage.run(50)
    for _ in range(3):  # setting the same deadline again does not prolong the grace period
        stage.run(5)
        stage.set(50)
    stage.run(5)
    assert stage.due == [50 + STALL_MS + 1 + GRACE_MS]
