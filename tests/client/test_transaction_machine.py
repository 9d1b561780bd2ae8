"""The machine of a transactional producer: case by case, and at random against the coordinator's real core."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.transaction_end import check, check_progress, heal
from tests.client.transaction_run import Run
from tests.parts import few

STEPS = 300


@pytest.mark.parametrize("level", [0, 2])
@settings(max_examples=few(150))
@given(st.integers(0, 1 << 32))
def test_readers_see_what_the_application_was_told(level: int, seed: int) -> None:
    run = Run(seed, level=level)
    for _ in range(STEPS):
        run.step()
    heal(run)
    check(run)
    check_progress(run)
    check(run)


@pytest.mark.parametrize("level", [0, 2])
def test_the_runs_meet_what_they_are_for(level: int) -> None:
    total: dict[str, int] = {}
    for seed in range(60):
        run = Run(seed, level=level)
        for _ in range(STEPS):
            run.step()
        for name, count in run.counts.items():
            total[name] = total.get(name, 0) + count
    assert all(total[name] > 5 for name in ("commits", "aborts", "fenced", "failovers")), total
