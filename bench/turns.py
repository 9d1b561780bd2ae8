"""The processor time of each turn of an event loop, measured by the thread's clock; garbage collection is included.

A turn is one round of asyncio's loop: it waits, then runs every callback that is due. Waiting uses no processor time.
Turns are counted by the second in which they ended (of the machine's monotonic clock) and by their length, so that a
process can count millions of them, and another process can ask for a span of time afterwards.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from selectors import BaseSelector

from bench.long_turns import LongTurns

STEP_US = 100  # lengths are rounded down to this


class MeasuredLoop(asyncio.SelectorEventLoop):
    """turns: how many ended in which second with which length; key: (second, length in STEP_US).

    long: names the long ones, if somebody sets it.
    """

    def __init__(self, selector: BaseSelector | None = None) -> None:
        super().__init__(selector)
        self.turns: Counter[tuple[int, int]] = Counter()
        self.long: LongTurns | None = None

    def _run_once(self) -> None:
        """Called by asyncio for each turn."""
        if self.long is not None:
            self.long.begin()
        before_ns = time.thread_time_ns()
        super()._run_once()  # type: ignore[misc]  # a private method, not in the stubs
        used_ns = time.thread_time_ns() - before_ns
        self.turns[int(self.time()), used_ns // 1_000 // STEP_US] += 1
        if self.long is not None:
            self.long.end(self.time(), used_ns)


@dataclass(frozen=True, slots=True)
class Turns:
    """Of one span of time. lengths_ms: how many turns had which length."""

    lengths_ms: Mapping[float, int]

    @property
    def longest_ms(self) -> float:
        return max(self.lengths_ms, default=0.0)

    def percentile_ms(self, share: float) -> float:
        """The shortest length that `share` (0 to 1) of the turns do not exceed."""
        total, seen = sum(self.lengths_ms.values()), 0
        for length_ms in sorted(self.lengths_ms):
            seen += self.lengths_ms[length_ms]
            if seen >= share * total:
                return length_ms
        return 0.0


def write_turns(turns: Mapping[tuple[int, int], int], file: Path) -> None:
    file.write_text(json.dumps([[second, length, count] for (second, length), count in turns.items()]))


def read_turns(file: Path, start_s: float, end_s: float) -> Turns:
    """The turns that ended between two times of `time.monotonic`, to the second, both included."""
    lengths: Counter[float] = Counter()
    for second, length, count in json.loads(file.read_text()):
        if int(start_s) <= second <= int(end_s):
            lengths[(length + 1) * STEP_US / 1_000] += count
    return Turns(lengths)
