"""A short drill at three real nodes: a fault that costs little, by watchers that need nothing installed.

`./dev drill` has all faults, with Prometheus; the night runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jepsen.drill.load import Load
from jepsen.drill.more_faults import BY_NAME
from jepsen.drill.run import Drill, Outcome, with_drill
from jepsen.drill.sights import CHECK, CONSOLE
from jepsen.drill.world import DrillCluster

WATCHED = (CHECK, CONSOLE)


@pytest.mark.parametrize("name", ["nearly-full-disk"])
def test_a_fault_is_named_and_nothing_else(tmp_path: Path, name: str) -> None:
    outcomes: list[Outcome] = []

    def work(drill: Drill, _cluster: DrillCluster, _load: Load, now_s: Callable[[], float]) -> None:
        outcomes.append(drill.strike(BY_NAME[name], now_s))

    said: list[str] = []
    with_drill(tmp_path, WATCHED, said.append, work)
    assert outcomes[0].failures() == [], said
