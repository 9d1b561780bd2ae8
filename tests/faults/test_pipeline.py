"""A real Spark streams exactly once while it and the nodes are killed, and some cells of the matrix of its histories.

`./dev nightly` has 300 kills and the whole matrix."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jepsen.pipeline.report import REPORT
from quorumlog.spark.session.java import NoJava, use_java

ROOT = Path(__file__).resolve().parents[2]
KILLS = 7  # one of each target
SEED = "5"  # a map
CELLS = ("coordinator/record/both", "executor/returns/stop", "leader/commit/raises/replay")


def run(report: Path, *options: str) -> dict[str, Any]:
    """The facts of a run that must be valid."""
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "jepsen", "pipeline", "--seed", SEED, "--report", str(report), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-8_000:]}\n{done.stderr[-2_000:]}"
    facts: dict[str, Any] = json.loads((report / REPORT).read_text())
    assert facts["verdict"] == "VALID" and facts["findings"] == []
    return facts


@pytest.mark.timeout(500)
def test_seven_kills_lose_nothing_and_write_nothing_twice(tmp_path: Path) -> None:
    facts = run(tmp_path, "--kills", str(KILLS), "--minutes", "7")
    assert len(facts["strikes"]) == KILLS
    assert facts["counts"]["rows readable"] == facts["counts"]["source records"] > 0


@pytest.mark.timeout(400)
def test_some_cells_of_the_matrix(tmp_path: Path) -> None:
    facts = run(tmp_path, "--matrix", "--cells", ",".join(CELLS))
    assert [line.split()[0] for line in facts["table"] if " reached" in line] == [*sorted(CELLS, key=order_of)]


def order_of(name: str) -> int:
    """As the matrix plays them."""
    from jepsen.pipeline.cells import chosen

    return [str(cell) for cell in chosen(())].index(name)
