"""A majority that is lost, recovered on one survivor, and comes back with its disks (jepsen/sim/incarnations/)."""

from __future__ import annotations

from functools import cache

import pytest

from jepsen.sim.incarnations import lost_majority

run = cache(lost_majority.run)


@pytest.mark.parametrize("seed", range(1, 13))
def test_the_old_majority_is_refused_and_nothing_new_is_lost(seed: int) -> None:
    result = run(seed)
    assert result.findings == []
    assert result.exercised["calls refused"] == 30
    assert result.exercised["topics of the new incarnation"] >= 4


def test_the_seeds_meet_what_they_are_for() -> None:
    met = {what for seed in range(1, 13) for what in run(seed).exercised}
    assert met >= {
        "survivors that were behind",
        "brokers adopted",
        "brokers that knew more",
        "brokers left in the old incarnation",
        "nodes formatted anew",
        "topics of the old incarnation that came too late",
        "restarts beside the other incarnation",
        "survivors that were lost, too",
        "transactions that the lost controllers left open",
    }
