"""Loss 0: a restarted leader appends in a leadership that was given to its life before.

After power-off of all, a broker believes the leadership of its old image before it is registered. It has lost a record
that was not synced and that two followers kept, and writes another one at the same offset in the same epoch.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.losses.promises import expected_loss, promised

SEEDS = (7, 1014, 620007, 620011)  # several, because another fix may move the faults of a single seed
RUN_S = 100.0


@pytest.mark.timeout(400)
@expected_loss("a broker appends and acknowledges before the controller has given the leadership to this life of it")
def test_the_logs_of_all_replicas_match_after_the_power_has_gone() -> None:
    for seed in SEEDS:
        done = subprocess.run(
            [sys.executable, "-m", "jepsen", "sim", "--seed", str(seed), "--profile", "disks", "--seconds", "30"],
            cwd=Path(__file__).resolve().parents[2],
            capture_output=True, text=True, timeout=RUN_S, check=False,
        )  # fmt: skip
        if "trace" not in done.stdout:
            raise RuntimeError(f"the simulation did not come to a verdict: {done.stdout}{done.stderr}")
        with promised():
            assert done.returncode == 0 and f"seed {seed}: VALID" in done.stdout, done.stdout
