"""Nodes whose brokers open no logs: they register, beat, follow the metadata and answer what the metadata tells.

Everything else is production's: the quorum, the controller, the loader, the lifecycle and the handlers. So a broker
costs little, and a run has the brokers that topics and sequential reads need.
"""

from __future__ import annotations

from jepsen.light_broker import LightBroker
from quorumlog.messages.common import FeatureRange
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.loader import MetadataLoader
from quorumlog_quorum.metadata.snapshot_records import ImageLoad
from quorumlog_quorum.snapshots import SnapshotHeading
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.edge.edges import Edges
from quorumlog_server.process.node import Node


class WatchedLoader(MetadataLoader):
    """loads: snapshots that were begun, since somebody looked."""

    loads = 0

    def on_snapshot(self, heading: SnapshotHeading) -> ImageLoad:
        self.loads += 1
        return super().on_snapshot(heading)


class LightNode(Node):
    broker_class = LightBroker

    def __init__(self, config: NodeConfig, edges: Edges, supported: tuple[FeatureRange, ...] = SUPPORTED) -> None:
        super().__init__(config, edges, supported)
        self.loader = self._watched = WatchedLoader(supported)

    def takes_load(self) -> bool:
        """Whether it has begun to load a snapshot since the last call."""
        loads, self._watched.loads = self._watched.loads, 0
        return loads > 0


def build_light_node(config: NodeConfig, edges: Edges, supported: tuple[FeatureRange, ...]) -> Node:
    return LightNode(config, edges, supported)
