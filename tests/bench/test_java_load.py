"""The cost of a load, from the lines of Kafka's tool and the nodes' processor time at each of them."""

from __future__ import annotations

import pytest

from bench.java_load import Cost, Point, check_total, cost, window_records
from bench.processor_time import Spent

WINDOW = "3480 records sent, 6757.3 records/sec (6.60 MB/sec), 4801.4 ms avg latency, 4895.0 ms max latency.\n"
TOTAL = (
    "60000 records sent, 5694.2 records/sec (5.56 MB/sec), 3587.59 ms avg latency, 5184.00 ms max latency, "
    "3751 ms 50th, 4886 ms 95th, 5063 ms 99th, 5152 ms 99.9th.\n"
)

LINES = [
    ("an interval", WINDOW, 3480),
    ("the total, which would count all records twice", TOTAL, None),
    ("the tool's hint", "Warmup first 30000 records. Steady state results will print at the end.", None),
    ("an error", "org.apache.kafka.common.errors.TimeoutException: Expiring 9 record(s)", None),
]


@pytest.mark.parametrize(("line", "want"), [case[1:] for case in LINES], ids=[case[0] for case in LINES])
def test_only_the_lines_of_intervals_count(line: str, want: int | None) -> None:
    assert window_records(line) == want


def test_the_cost_is_that_of_the_records_after_the_warm_up() -> None:
    points = [
        Point(0.0, 0, Spent(50.0, 50.0)),
        Point(5.0, 9_999, Spent(70.0, 60.0)),  # still warming up
        Point(6.0, 10_000, Spent(71.0, 61.0)),
        Point(6.5, 15_000, Spent(71.1, 61.0)),
        Point(8.0, 30_000, Spent(71.4, 61.1)),
    ]
    found = cost(points, warm_up=10_000, record_bytes=1_000)  # 20 MB in 2 s
    assert found == pytest.approx(Cost(mb_per_s=10.0, user_ms_per_mb=20.0, system_ms_per_mb=5.0))
    assert found.ms_per_mb == pytest.approx(25.0)


def test_a_run_that_is_too_short_is_not_measured() -> None:
    points = [Point(0.0, 0, Spent(0, 0)), Point(1.0, 10, Spent(1, 1)), Point(2.0, 20, Spent(2, 2))]
    with pytest.raises(AssertionError, match="2 lines of the tool after its warm-up; measure more MB"):
        cost(points, warm_up=10, record_bytes=100)


@pytest.mark.parametrize("said", [[WINDOW, TOTAL.replace("60000", "59991")], [WINDOW]], ids=["lost", "no total"])
def test_records_that_were_not_acknowledged_are_an_error(said: list[str]) -> None:
    with pytest.raises(AssertionError, match="of 60000 records acknowledged"):
        check_total(said, 60_000)
    check_total([WINDOW, TOTAL], 60_000)
