"""20,000 inputs against a whole node; `./dev fuzz` takes any number."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts import few
from tests.scenarios.node_fuzz import NodeFuzz

COUNT = few(20_000)


@pytest.mark.counts
def test_arbitrary_bytes_do_not_harm_a_node(tmp_path: Path) -> None:
    """CVE-2026-83525, too: requests with empty lists are among them."""
    fuzzing = NodeFuzz(tmp_path)
    try:
        fuzzing.run(COUNT, first_seed=1)
        fuzzing.restart()
    finally:
        fuzzing.close()
    assert fuzzing.tally.shortfalls() == []
