"""The rows of transactions beside Kafka. The goals were set in advance."""

from __future__ import annotations

from bench.kafka_samples import Samples
from bench.kafka_table import figure_beside, or_why, ratios
from bench.kafka_transactions import CLIENTS, DURATIONS_MS, PLAIN, produced
from bench.report import Row

PRODUCE_GOAL, PLAIN_GOAL, COMMITS_GOAL, P50_GOAL, READ_GOAL, END_TO_END_GOAL = 1.0, 0.8, 1.0, 1.0, 5.0, 1.0


def transaction_rows(theirs: Samples, ours: Samples) -> list[Row]:
    rows = figure_beside("produce 1 KiB, no transactions", "MB/s", PLAIN, None, theirs, ours, at_least=True)
    for duration_ms in DURATIONS_MS:
        name, figure = f"produce 1 KiB, transactions of {duration_ms:,} ms", produced(duration_ms)
        rows += figure_beside(name, "MB/s", figure, PRODUCE_GOAL, theirs, ours, at_least=True)
        rows += _beside_plain("Kafka: " + name, figure, theirs, None)
        rows += _beside_plain(name, figure, ours, PLAIN_GOAL)
    for client in CLIENTS:
        name = f"begin, one record, commit: {client}"
        rows += figure_beside(name, "1/s", f"{client} commits", COMMITS_GOAL, theirs, ours, at_least=True)
        rows += figure_beside(f"{name}, p50", "ms", f"{client} p50", P50_GOAL, theirs, ours)
    name = "read_committed into Arrow, 10 % aborted"
    rows += figure_beside(name, "records/s", "committed read", READ_GOAL, theirs, ours, at_least=True)
    for part in ("p50", "p99"):
        name = f"end to end, transactions of 100 ms, {part}"
        rows += figure_beside(name, "ms", f"end to end {part}", END_TO_END_GOAL, theirs, ours)
    return rows


def _beside_plain(name: str, figure: str, of: Samples, goal: float | None) -> list[Row]:
    """A rate beside the rate of the same cluster without transactions."""
    name += " / plain"

    def make() -> list[Row]:
        rates = of[figure]
        return [Row(name=name, unit="MB/s", rounds=rates, shares=ratios(of[PLAIN], rates), of="plain", goal=goal)]

    return or_why(name, make)
