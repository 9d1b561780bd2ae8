"""The rows of transactions beside Kafka: ratios, the share of the plain rate, and figures that were not measured."""

from __future__ import annotations

import pytest

from bench.kafka.table import Samples
from bench.kafka.transactions import CLIENTS, DURATIONS_MS, PLAIN, produced, transaction_rows


def measured(name: str, *, plain: float, transactional: float, rate: float, ms: float) -> Samples:
    found = Samples(name)
    found.add(PLAIN, plain)
    for duration_ms in DURATIONS_MS:
        found.add(produced(duration_ms), transactional)
    for client in CLIENTS:
        found.add(f"{client} commits", rate)
        found.add(f"{client} p50", ms)
    found.add("committed read", rate)
    for part in ("p50", "p99"):
        found.add(f"end to end {part}", ms)
    return found


THEIRS = measured("Kafka", plain=50.0, transactional=45.0, rate=100.0, ms=10.0)


def test_rates_are_to_be_higher_and_times_lower() -> None:
    ours = measured("quorumlog", plain=100.0, transactional=60.0, rate=400.0, ms=9.0)
    rows = {row.name: row for row in transaction_rows(THEIRS, ours)}
    assert rows["produce 1 KiB, transactions of 1,000 ms"].reached is True
    assert rows["produce 1 KiB, transactions of 1,000 ms / plain"].reached is False
    assert rows["Kafka: produce 1 KiB, transactions of 100 ms / plain"].reached is None
    assert rows["begin, one record, commit: Java"].reached is True
    assert rows["begin, one record, commit: librdkafka, p50"].reached is True
    assert rows["read_committed into Arrow, 10 % aborted"].reached is False
    assert list(rows["end to end, transactions of 100 ms, p99"].shares) == [0.9, 0.9, 0.9]


@pytest.mark.parametrize("figure", [produced(100), "Java commits", "committed read", "end to end p50"])
def test_what_was_not_measured_says_why_and_costs_no_other_row(figure: str) -> None:
    ours = measured("quorumlog", plain=1.0, transactional=1.0, rate=1.0, ms=1.0)

    def fail() -> None:
        raise OSError("no disk")

    ours.attempt([figure], fail)
    failed = [row for row in transaction_rows(THEIRS, ours) if row.failed]
    assert 1 <= len(failed) <= 2, failed
    assert all("no disk" in str(row.failed) for row in failed)
