"""The controller on this node."""

from __future__ import annotations

from typing import Final

from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series

ACTIVE = Series(
    "active_controller",
    Kind.GAUGE,
    "",
    (),
    "Is this node the active controller? The sum over all nodes is 1.",
    "kafka.controller:type=KafkaController,name=ActiveControllerCount",
)
ELECTIONS = Series(
    "elections_total",
    Kind.COUNTER,
    "",
    ("kind",),
    "How many leaders did this node elect? Those of kind unclean may lack acknowledged records.",
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
)
UNCLEAN_RECOVERIES = Series(
    "unclean_recoveries", Kind.GAUGE, "", (), "How many partitions without a leader have their replicas asked?"
)

SERIES: Final = (ACTIVE, ELECTIONS, UNCLEAN_RECOVERIES)


def collect(source: Source, out: Reading) -> None:
    controller, driver = source.node.controller, source.node.driver
    out.add(ACTIVE, driver is not None and driver.is_leader)
    if controller is not None:
        out.add(ELECTIONS, controller.unclean_elections, "unclean")
        out.add(UNCLEAN_RECOVERIES, controller.unclean_recoveries)
