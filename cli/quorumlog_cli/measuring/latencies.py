"""Latencies in buckets, so that a million cost no memory; and when a record is due. Pure.

Coordinated omission: a client that waits for a slow answer sends less meanwhile, and so measures few of the waits that
its users would have met. With a rate, each record has a time at which it is due; its latency counts from there, however
late it was sent. HdrHistogram and wrk2 correct for it so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

SHARE_BITS = 7  # a bucket is at most 1/128 of its values wide


@dataclass(slots=True)
class Latencies:
    """Times in us. buckets: how often, by the lowest time of the bucket."""

    buckets: Counter[int] = field(default_factory=Counter)
    count: int = 0
    total_us: int = 0
    max_us: int = 0

    def add(self, us: int) -> None:
        us = max(0, us)
        shift = max(0, us.bit_length() - SHARE_BITS - 1)
        self.buckets[us >> shift << shift] += 1
        self.count += 1
        self.total_us += us
        self.max_us = max(self.max_us, us)

    def merge(self, other: Latencies) -> None:
        self.buckets.update(other.buckets)
        self.count += other.count
        self.total_us += other.total_us
        self.max_us = max(self.max_us, other.max_us)

    def percentile_us(self, percent: float) -> int:
        """The time that so many percent do not exceed, to 1/128 of it; 0 of none. 0 < percent <= 100."""
        rank = max(1, -(-self.count * percent // 100))
        seen = 0
        for us in sorted(self.buckets):
            seen += self.buckets[us]
            if seen >= rank:
                return us
        return 0

    def in_ms(self) -> Mapping[str, float]:
        """For a report: avg, max and four percentiles."""
        found = {f"p{percent:g}": self.percentile_us(percent) / 1_000 for percent in (50, 95, 99, 99.9)}
        average_us = self.total_us / self.count if self.count else 0
        return {"avg": round(average_us / 1_000, 3), "max": self.max_us / 1_000, **found}


@dataclass(frozen=True, slots=True)
class Schedule:
    """begin_us: of the first record. per_s: records a second; None: each is due when the one before it was sent."""

    begin_us: int
    per_s: float | None

    def due_us(self, index: int, now_us: int) -> int:
        return now_us if self.per_s is None else self.begin_us + int(index * 1_000_000 / self.per_s)
