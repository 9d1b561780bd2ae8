"""Loss 0: a restarted leader appended in a leadership that was given to its life before.

After a power cut of all machines, a broker believed the leadership of its old image before it was registered. It had
lost a record that was not synced and that two followers kept, and wrote another one at the same offset in the same
epoch.
"""

from __future__ import annotations

import os

import pytest

from jepsen.pool.pool import results
from jepsen.sim.job import Job

SEEDS = (7, 1014, 620007, 620011)  # each of them was INVALID: clients saw it, or logs of equal epochs differed


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_logs_of_all_replicas_match_after_the_power_has_gone(seed: int) -> None:
    ((_, result),) = results(iter([Job(seed=seed, profile="disks", seconds=30)]), 1, os.environ)
    assert (result["verdict"], result["findings"][:3]) == ("VALID", [])
