"""The rows of thousands of partitions beside Kafka. The goals were set in advance."""

from __future__ import annotations

from bench.kafka_partitions import (
    CREATED,
    CREATED_SEEN,
    CREATED_WRITTEN,
    KILLED,
    KILLED_BACK,
    KILLED_WRITTEN,
    MEMORY,
    RESTARTED,
)
from bench.kafka_reassignment import P50, P99, RATE, REST_P99
from bench.kafka_samples import Samples
from bench.kafka_table import figure_beside
from bench.report import Row

CREATED_GOAL, KILLED_GOAL, RESTARTED_GOAL, MOVED_GOAL, MOVED_P99_GOAL = 0.3, 0.3, 0.5, 1.0, 1.0
# Name, unit, figure, goal, and whether more is better.
ROWS: tuple[tuple[str, str, str, float | None, bool], ...] = (
    ("partitions created until all are led, ISRs whole", "s", CREATED, CREATED_GOAL, False),
    ("  until all brokers' metadata say so", "s", CREATED_SEEN, None, False),
    ("  until each has taken a record, acks=all", "s", CREATED_WRITTEN, None, False),
    ("  resident memory of a node", "MB", MEMORY, None, False),
    ("kill -9 of a broker until all have a live leader", "s", KILLED, KILLED_GOAL, False),
    ("  until each has taken a record, acks=all", "s", KILLED_WRITTEN, None, False),
    ("  from its start until back in all ISRs", "s", KILLED_BACK, None, False),
    ("controlled restart until back in all ISRs", "s", RESTARTED, RESTARTED_GOAL, False),
    ("reassignment", "MB/s", RATE, MOVED_GOAL, True),
    ("  producers' p50 meanwhile", "ms", P50, None, False),
    ("  producers' p99 meanwhile", "ms", P99, MOVED_P99_GOAL, False),
    ("  producers' p99 before it", "ms", REST_P99, None, False),
)


def partition_rows(theirs: Samples, ours: Samples) -> list[Row]:
    return [
        row
        for name, unit, figure, goal, more in ROWS
        for row in figure_beside(name, unit, figure, goal, theirs, ours, at_least=more)
    ]
