"""The active controller of three processes is killed and stopped ten times under metadata changes. `./dev
controller-loop` does it a hundred times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAULTS = 10


@pytest.mark.timeout(180)
def test_no_acknowledged_change_is_lost_and_each_epoch_has_one_leader(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jepsen", "controller-loop", "--count", str(FAULTS), "--report", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    facts = json.loads((tmp_path / "report.json").read_text())
    assert facts["verdict"] == "VALID" and facts["findings"] == []
    assert [strike["kind"] for strike in facts["strikes"]] == ["kill -9", "SIGSTOP"] * (FAULTS // 2)
    assert all(min(strike["before"], strike["after"]) >= 10 for strike in facts["strikes"])
    epochs = [strike["epoch"] for strike in facts["strikes"]]
    assert epochs == sorted(set(epochs)) and len(facts["leaders"]) == 3
