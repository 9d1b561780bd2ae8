"""What happens in the virtual year, and how often: a queue of events on virtual time, drawn from the seed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from jepsen.soak.year.topics import DAY_MS, HOUR_MS

LOAD, LOOK, LOOK_AT_ALL, SAMPLE = "load", "look", "look at all", "sample"
STOP, KILL, POWER_CUT = "clean restart", "kill", "power cut"
DIRECTORY_FAILS, DIRECTORY_RETURNS = "directory fails", "directory returns"
CLEANER_DIES, CLOCK_JUMPS = "cleaner dies", "clock jumps"
TOPIC_ANEW, SETTING, SETTING_BACK, DELETE_RECORDS = "topic anew", "setting", "setting back", "delete records"
MOVE, MOVE_CANCELLED = "move", "move cancelled"
EVERY_MS = {  # the mean time between two of them; those that are missing follow from others
    LOAD: HOUR_MS * 3 // 4,
    LOOK: 12 * HOUR_MS,
    LOOK_AT_ALL: 10 * DAY_MS,
    STOP: 3 * DAY_MS,
    KILL: 4 * DAY_MS,
    POWER_CUT: 4 * DAY_MS,
    DIRECTORY_FAILS: 5 * DAY_MS,
    CLEANER_DIES: 2 * DAY_MS,
    CLOCK_JUMPS: 2 * DAY_MS,
    TOPIC_ANEW: 2 * DAY_MS,
    SETTING: 2 * DAY_MS,
    DELETE_RECORDS: 12 * HOUR_MS,
    MOVE: 8 * HOUR_MS,
    MOVE_CANCELLED: 2 * DAY_MS,
}
SAMPLE_EVERY_MS = DAY_MS


@dataclass(order=True)
class Event:
    at_ms: int
    number: int
    name: str = field(compare=False)
    act: Callable[[], None] | None = field(compare=False, default=None)  # None: that of the name


class Events:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._heap: list[Event] = []
        self._number = 0
        for name in EVERY_MS:
            self._again(name, 0)
        self.at(SAMPLE_EVERY_MS, SAMPLE)

    def at(self, at_ms: int, name: str, act: Callable[[], None] | None = None) -> None:
        self._number += 1
        heapq.heappush(self._heap, Event(at_ms, self._number, name, act))

    def take(self) -> Event:
        """The next one; another of its kind will follow."""
        event = heapq.heappop(self._heap)
        if event.act is None:
            if event.name == SAMPLE:
                self.at(event.at_ms + SAMPLE_EVERY_MS, SAMPLE)
            elif event.name in EVERY_MS:
                self._again(event.name, event.at_ms)
        return event

    def _again(self, name: str, after_ms: int) -> None:
        self.at(after_ms + 1 + int(self._rng.expovariate(1 / EVERY_MS[name])), name)
