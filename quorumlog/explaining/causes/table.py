"""What a row of the table of causes is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quorumlog.explaining.facts import Facts
from quorumlog.explaining.finding import Finding
from quorumlog.explaining.thresholds import Thresholds

Find = Callable[[Facts, Thresholds], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Cause:
    """name: what a finding calls it; says: in a sentence, for the page. area: of `quorumlog check`."""

    name: str
    area: str
    says: str
    find: Find


PERF, QUORUM, LAG, DISK, SEGMENT = "perf", "quorum", "lag", "disk", "segment"
AREAS = (PERF, QUORUM, LAG, DISK, SEGMENT)
