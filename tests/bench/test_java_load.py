"""The cost of a load, from the lines of Kafka's tool and the nodes' processor time at each of them."""

from __future__ import annotations

import pytest

from bench.kafka.java_load import Cost, Point, check_total, cost, window_records
from bench.measuring.processor_time import Spent

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


def at(at_s: float, acknowledged: int, user_s: float, system_s: float, client_s: float = 0.0) -> Point:
    return Point(at_s, acknowledged, Spent(user_s, system_s), Spent(client_s, 0.0))


def test_the_cost_is_that_of_the_records_between_the_start_and_the_drain() -> None:
    points = [
        at(0.0, 0, 50.0, 50.0),
        at(5.0, 9_999, 70.0, 60.0),  # still starting
        at(6.0, 10_000, 71.0, 61.0, 3.0),
        at(6.2, 12_000, 71.0, 61.0, 3.1),
        at(6.5, 15_000, 71.1, 61.0, 3.2),
        at(7.5, 20_000, 71.2, 61.0, 3.3),
        at(8.0, 30_000, 71.4, 61.1, 3.6),
        at(8.1, 30_001, 90.0, 90.0, 9.0),  # draining
    ]
    found = cost(points, first=10_000, last=30_000, record_bytes=1_000)  # 20 MB in 2 s
    assert found == pytest.approx(Cost(mb_per_s=10.0, user_ms_per_mb=20.0, system_ms_per_mb=5.0, client_ms_per_mb=30.0))
    assert found.ms_per_mb == pytest.approx(25.0)


def test_a_run_that_is_too_short_is_not_measured() -> None:
    with pytest.raises(AssertionError, match="only 4 lines of the tool to measure by; measure more MB"):
        cost([at(turn, turn, turn, turn) for turn in range(6)], first=1, last=4, record_bytes=100)


@pytest.mark.parametrize("said", [[WINDOW, TOTAL.replace("60000", "59991")], [WINDOW]], ids=["lost", "no total"])
def test_records_that_were_not_acknowledged_are_an_error(said: list[str]) -> None:
    with pytest.raises(AssertionError, match="of 60000 records acknowledged"):
        check_total(said, 60_000)
    check_total([WINDOW, TOTAL], 60_000)
