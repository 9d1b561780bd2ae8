"""How the selector of a node's event loop measures stalls."""

from __future__ import annotations

import selectors
import socket

from quorumlog_server.process.watchdog import STALL_MS, LoopWatchdog


class World:
    """A watchdog whose clock the test turns."""

    def __init__(self) -> None:
        self.now_s, self.told = 0.0, [0]
        self.told.clear()
        self.watchdog = LoopWatchdog(self.told.append, lambda: self.now_s)

    def wait(self, timeout_s: float = 0.0) -> None:
        self.watchdog.selector.select(timeout_s)

    def pass_s(self, seconds: float) -> None:
        self.now_s += seconds


def test_a_turn_is_told_with_its_whole_length_each_time() -> None:
    world = World()
    try:
        for seconds in (0.5, 0.3, 0.3):
            world.wait()
            world.pass_s(seconds)
        world.wait()
        assert world.told == [500, 300, 300] and world.watchdog.max_stall_ms == 500
    finally:
        world.watchdog.selector.close()


def test_a_short_turn_is_not_told_but_counts() -> None:
    world = World()
    try:
        world.wait()
        world.pass_s(0.125)
        world.wait()
        assert world.told == [] and 0 < world.watchdog.max_stall_ms == 125 < STALL_MS
    finally:
        world.watchdog.selector.close()


def test_turns_are_counted_by_their_length_and_the_rest_is_waiting() -> None:
    looks = iter([0, 0, 0, 2.0, 2.0005, 3.0005, 3.3005, 3.5005, 5.0005, 5.0005])  # two at the start, two of each wait
    watchdog = LoopWatchdog(lambda _ms: None, lambda: next(looks))
    ours, peers = socket.socketpair()
    with watchdog.selector as selector, ours, peers:
        selector.register(ours, selectors.EVENT_WRITE)  # it is ready, so that no wait takes real time
        for _ in range(3):
            selector.select(None)
        assert watchdog.selector.busy_ratio == 0.0, "the window is not over"
        selector.select(None)
        turns = watchdog.selector.turns
        assert turns.count == 3 and turns.counts[0] == 1 and round(turns.sum, 6) == 1.8005
        assert round(watchdog.selector.busy_ratio, 6) == round(1 - 3.2 / 5.0005, 6)
