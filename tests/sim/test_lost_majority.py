"""A majority that is lost, recovered on one survivor, and comes back with its disks (jepsen/sim/incarnations/)."""

from __future__ import annotations

from functools import cache

import pytest

from jepsen.sim.incarnations import fetched_snapshot, lost_majority
from tests.rules import rule

run = cache(lost_majority.run)


@rule("kraft 13.1", "kraft 13.4")
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


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_broker_that_knew_more_from_a_snapshot_alone_is_not_adopted(seed: int) -> None:
    result = fetched_snapshot.run(seed)
    assert result.findings == []
    assert result.exercised[fetched_snapshot.SNAPSHOT_ALONE] == 1
    assert result.exercised["brokers that knew more"] >= 1
