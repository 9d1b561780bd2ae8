"""The metrics count unclean elections, and partitions whose replicas are asked for their logs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from quorumlog_server.process.metrics import NodeCollector


def gauges(controller: Any) -> dict[str, float]:
    node: Any = SimpleNamespace(controller=controller)
    collector = NodeCollector(node, watchdog=None)  # type: ignore[arg-type]
    return {family.name: family.samples[0].value for family in collector._of_controller()}


def test_they_are_those_of_the_controller() -> None:
    assert gauges(SimpleNamespace(unclean_elections=3, unclean_recoveries=2)) == {
        "quorumlog_controller_unclean_elections": 3,
        "quorumlog_controller_unclean_recoveries": 2,
    }


def test_a_broker_alone_has_none() -> None:
    assert gauges(None) == {}
