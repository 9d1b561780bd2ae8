"""What one scrape reads of a node, in a thread beside the node's loop.

The thread shares the interpreter with the loop, so it gives way every millisecond: without that, each turn of the loop
would wait for as long as the interpreter lets a thread run, 5 ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from quorumlog_server.metrics.series import Rest, Series

if TYPE_CHECKING:
    from quorumlog.histogram import Histogram
    from quorumlog_server.process.node import Node
    from quorumlog_server.process.watchdog import LoopWatchdog

T = TypeVar("T")
Number = int | float
Value = Number | tuple[Number, ...]  # of a histogram: its sum, then the counts of its buckets
Labels = tuple[str, ...]
AtLoop = Callable[[Callable[[], Any]], Any]

WORK_S = 0.001  # before it gives way
PAUSE_S = 0.000_1
LOOK_EVERY = 32  # steps between two looks at the clock

_MERGE: dict[Rest, Callable[[Number, Number], Number]] = {
    Rest.SUM: lambda a, b: a + b,
    Rest.LARGEST: max,
    Rest.LEAST: min,
}


def run_here(call: Callable[[], T]) -> T:
    return call()


@dataclass(frozen=True, slots=True)
class Source:
    """What the areas read. wall_ms, now_ms: the node's clocks when the scrape began."""

    node: Node
    watchdog: LoopWatchdog
    wall_ms: int
    now_ms: int

    @property
    def is_detailed(self) -> bool:
        """Partitions are shown, too (`metrics.detail`)."""
        return self.node.config.process.metrics_detail == "high"


@dataclass(slots=True)
class Pace:
    """Gives way to the loop after WORK_S of work."""

    sleep: Callable[[float], None] = time.sleep
    now_s: Callable[[], float] = time.perf_counter
    _steps: int = 0
    _began_s: float = 0.0

    def step(self) -> None:
        self._steps += 1
        if self._steps % LOOK_EVERY == 0 and self.now_s() - self._began_s >= WORK_S:
            self.sleep(PAUSE_S)
            self._began_s = self.now_s()


@dataclass(slots=True)
class Reading:
    """rows: the values by series and labels. Two values with the same labels become one.

    at_loop: runs a call there, and waits for it.
    """

    at_loop: AtLoop = run_here
    pace: Pace = field(default_factory=Pace)
    rows: dict[Series, dict[Labels, Value]] = field(default_factory=dict)

    def add(self, series: Series, value: Number, *labels: str) -> None:
        """labels: in the order of the series."""
        self._add(series, value, labels)

    def add_histogram(self, series: Series, histogram: Histogram, *labels: str) -> None:
        self._add(series, (histogram.sum, *histogram.counts), labels)

    def on_loop(self, call: Callable[[], T]) -> T:
        """For what changes something of the node, and is short."""
        result: T = self.at_loop(call)
        return result

    def each(self, things: Collection[T]) -> Iterator[T]:
        """The things of a collection that the loop may change meanwhile: those that are in it now."""
        step = self.pace.step
        for one in list(things):
            step()
            yield one

    def _add(self, series: Series, value: Value, labels: Labels) -> None:
        assert len(labels) == len(series.labels), f"{series.name} has the labels {series.labels}, not {labels}"
        found = self.rows.setdefault(series, {})
        found[labels] = merged(series.rest, found[labels], value) if labels in found else value
        self.pace.step()


def merged(rest: Rest, one: Value, other: Value) -> Value:
    if isinstance(one, tuple):
        assert isinstance(other, tuple) and len(one) == len(other)
        return tuple(a + b for a, b in zip(one, other, strict=True))
    assert not isinstance(other, tuple)
    return _MERGE[rest](one, other)
