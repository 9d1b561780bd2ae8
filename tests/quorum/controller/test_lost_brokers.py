"""A broker that is fenced counts as lost unless it was being shut down, or was fenced already."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog_quorum.controller.engine.controller_counts import ControllerCounts
from quorumlog_quorum.controller.shell.service import ControllerService


@pytest.mark.parametrize(
    ("fenced", "in_controlled_shutdown", "lost"),
    [(False, False, 1), (False, True, 0), (True, False, 0), (True, True, 0)],
)
def test_which_broker_counts_as_lost(fenced: bool, in_controlled_shutdown: bool, lost: int) -> None:
    broker = SimpleNamespace(fenced=fenced, in_controlled_shutdown=in_controlled_shutdown)
    counts, submitted = ControllerCounts(), []
    core = SimpleNamespace(tip=SimpleNamespace(brokers={3: broker}), counts=counts, fencing=lambda _: "fencing")
    service: Any = SimpleNamespace(_core=core, node_id=1, _runner=SimpleNamespace(submit=submitted.append))
    ControllerService._fence(service, 3, "its process is dead")
    assert counts.brokers_lost == lost and submitted == ["fencing"]
