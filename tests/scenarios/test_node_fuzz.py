"""20,000 inputs against a whole node; `./dev fuzz` takes any number."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.node_fuzz import NodeFuzz

COUNT = 20_000


def test_arbitrary_bytes_do_not_harm_a_node(tmp_path: Path) -> None:
    fuzzing = NodeFuzz(tmp_path)
    try:
        fuzzing.run(COUNT, first_seed=1)
        fuzzing.restart()
    finally:
        fuzzing.close()
    assert fuzzing.tally.shortfalls() == []
