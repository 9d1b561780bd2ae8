"""The metrics count unclean elections, and partitions whose replicas are asked for their logs."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from quorumlog_quorum.controller.engine.controller_counts import ControllerCounts
from quorumlog_quorum.metadata.image import EMPTY
from quorumlog_server.metrics import controller
from quorumlog_server.metrics.reading import Reading, Source


def found_on(service: Any) -> Reading:
    node: Any = SimpleNamespace(controller=service, driver=None, loader=SimpleNamespace(image=EMPTY))
    out, nothing = Reading(), Any
    controller.collect(Source(node, nothing, 0, 0), out)
    return out


def test_they_are_those_of_the_controller() -> None:
    out = found_on(SimpleNamespace(counts=ControllerCounts(Counter(unclean=3)), unclean_recoveries=2))
    assert out.rows[controller.ELECTIONS][("unclean",)] == 3
    assert out.rows[controller.UNCLEAN_RECOVERIES] == {(): 2}


def test_a_broker_alone_has_none() -> None:
    out = found_on(None)
    assert controller.ELECTIONS not in out.rows and controller.UNCLEAN_RECOVERIES not in out.rows
