"""20,000 inputs at a whole node; `./dev fuzz` takes as many as one likes."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.node_fuzz import NodeFuzz

COUNT = 20_000


def test_any_bytes_harm_no_node(tmp_path: Path) -> None:
    fuzzing = NodeFuzz(tmp_path)
    try:
        fuzzing.run(COUNT, first_seed=1)
        fuzzing.restart()
    finally:
        fuzzing.close()
    assert fuzzing.tally.shortfalls() == []
