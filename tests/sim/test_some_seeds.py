"""A few short seeds of some profiles: what `./dev test` has of the simulation."""

from __future__ import annotations

import pytest
from simulations import SHORT, Simulated, in_chunks, must_be_valid

from jepsen.sim.job import Job


@pytest.mark.parametrize("jobs", in_chunks(SHORT, len(SHORT)))
def test_some_short_seeds_are_valid(jobs: list[Job], simulated: Simulated) -> None:
    found = simulated(jobs)
    must_be_valid(jobs, found)
    assert all(sum(result["exercised"].values()) > 100 for result in found)
