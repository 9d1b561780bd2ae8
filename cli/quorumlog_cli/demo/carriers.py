"""Counts of flights per carrier, as records: what a member of the demo's second act writes, and what is read back.

Pure. A record's key is the carrier, its value how many more flights of it were read: their sum is the count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from quorumlog_cli.demo.flights import Figures


def count_carriers(values: Iterable[bytes], column: int) -> Counter[str]:
    """values: of the topic of flights, a CSV line behind the row's number. column: of the carrier in the CSV."""
    return Counter(value.split(b",", column + 2)[column + 1].decode() for value in values)


def sum_counts(records: Iterable[tuple[bytes | None, bytes | None]]) -> Counter[str]:
    """records: keys and values of the topic of counts."""
    counts: Counter[str] = Counter()
    for key, value in records:
        counts[(key or b"").decode()] += int(value or b"0")
    return counts


def count_problems(counts: Mapping[str, int], figures: Mapping[str, Figures], who: str = "the group") -> list[str]:
    """One text per carrier whose count is not the CSV's. who: has counted."""
    return [
        f"{carrier}: the CSV has {figures[carrier].flights if carrier in figures else 0:,} flights, "
        f"{who} counted {counts.get(carrier, 0):,}"
        for carrier in sorted({*counts, *figures})
        if counts.get(carrier, 0) != (figures[carrier].flights if carrier in figures else 0)
    ]
