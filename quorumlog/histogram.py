"""Counts of durations by their length, as Prometheus has histograms. To count costs a search among some 15 numbers."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BUCKETS: Final = {
    "call": (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    "disk": (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0),
    "event": (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0),
    "handshake": (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    "load": (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
    "turn": (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0),
}
"""Upper ends of the buckets in seconds, inclusive, by what is timed. What is longer than all of them counts in +Inf."""


class Histogram:
    """counts: by bucket, the last one is +Inf; not cumulative. sum: of all lengths, in seconds."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, buckets: str) -> None:
        """buckets: a name in BUCKETS."""
        self.bounds: tuple[float, ...] = BUCKETS[buckets]
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)
