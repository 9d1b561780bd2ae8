"""What the stream of the demo's third act has written, judged: each batch is there once and whole, and the last one has
the CSV's counts.

Pure. A batch is the records of one time. It has every carrier that any batch before it had, with no smaller count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from quorumlog_cli.demo.carriers import count_problems
from quorumlog_cli.demo.flights import Figures


class Total(NamedTuple):
    """time_ms: of the batch, since 1970. flights: of this carrier, up to this batch."""

    time_ms: int
    carrier: str
    flights: int


def by_batch(totals: Iterable[Total]) -> list[list[Total]]:
    """In the order of their times."""
    found: dict[int, list[Total]] = {}
    for total in totals:
        found.setdefault(total.time_ms, []).append(total)
    return [found[time_ms] for time_ms in sorted(found)]


def flights_counted(totals: Iterable[Total]) -> int:
    """Up to the batch that has counted most; 0 if there is none."""
    return max((sum(total.flights for total in batch) for batch in by_batch(totals)), default=0)


def total_problems(totals: Sequence[Total], batches: int, figures: Mapping[str, Figures]) -> list[str]:
    """batches: that Spark's checkpoint has noted as done. figures: of the CSV."""
    found = by_batch(totals)
    problems = []
    if len(found) != batches:
        problems.append(f"the checkpoint has {batches} batches, the topic {len(found)}")
    before: dict[str, int] = {}
    for number, batch in enumerate(found):
        counts = {total.carrier: total.flights for total in batch}
        if len(counts) != len(batch):
            problems.append(f"batch {number} is there twice, or a part of it: {len(batch)} records")
        problems += [
            f"batch {number}, {carrier}: {counts.get(carrier, 'nothing')} follows {flights:,} flights"
            for carrier, flights in before.items()
            if counts.get(carrier, 0) < flights
        ]
        before = counts
    return problems + count_problems(before, figures, "the stream")
