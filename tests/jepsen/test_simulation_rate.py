"""How fast a simulation went is told with its verdict."""

from __future__ import annotations

from jepsen.sim.result import rate_of


def test_a_rate_is_lines_per_second_of_processor_time() -> None:
    assert rate_of(30_000, 2.0) == "30,000 trace lines, 15,000 a second of processor time"
    assert rate_of(0, 0.0) == "0 trace lines, 0 a second of processor time", "no seed has ended"
