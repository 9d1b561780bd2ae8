"""Three real nodes that a fault can strike: TLS, users and rules, two log directories each, disks that obey.

The nodes are production's but for their disk (`jepsen/live/struck_node.py`). The second directory of each, `extra`, is
the one that is struck: the metadata log lies in the first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from jepsen.live.disks.edge_control import ORDER, Order, ordered
from quorumlog.client.blocking import Cluster
from quorumlog.ids import NodeId
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.waiting import wait_until

EXTRA = "extra"
CONFIG = {
    "log.dirs": f"data,{EXTRA}",
    "metadata.log.dir": "data",
    "metrics.detail": "high",  # else no series tells of a hot partition
    # A follower leaves the ISR when it has been behind for so long, and only then is it known as lagging: with Kafka's
    # default of 30 s nobody can be told within 30 s.
    "replica.lag.time.max.ms": "4000",
    "log.index.check.interval.ms": "5000",  # nobody waits for a day for a damaged batch
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "group.initial.rebalance.delay.ms": "500",
}


class StruckNodes(LocalNodes):
    def command(self, node: NodeFiles) -> list[str]:
        launcher = [sys.executable, "-P", "-m", "jepsen.live.struck_node", str(node.folder)]
        return [*launcher, "-c", str(node.config)]


class DrillCluster(LocalCluster):
    kind = StruckNodes

    def __init__(self, root: Path, *, keep_data: bool = False) -> None:
        super().__init__(root, config=CONFIG, tls=True, keep_data=keep_data)

    @property
    def controller(self) -> NodeId:
        return NodeId(self.client.admin.describe_quorum().leader_id)

    @property
    def others(self) -> list[NodeId]:
        """Without the active controller."""
        controller = self.controller
        return [one for one in self.nodes.ids if one != controller]

    def extra(self, node_id: NodeId) -> Path:
        return self.nodes.layout.node(node_id).folder / EXTRA

    def order(self, node_id: NodeId, blow: str) -> Callable[[], None]:
        """Strike the node's second directory; what is returned ends it."""
        folder = self.nodes.layout.node(node_id).folder
        ordered(folder, Order(blow, str(self.extra(node_id))))
        return lambda: (folder / ORDER).unlink(missing_ok=True)

    def bring_online(self, node_id: NodeId, within_s: float) -> None:
        """Bring the node's second directory back if it is offline. Raises TimedOut, RequestFailed."""
        admin, path = self.client.admin, str(self.extra(node_id))

        def is_online() -> bool:
            return all(not one.error_code for one in admin.describe_log_dirs()[node_id])

        wait_until(lambda: node_id in admin.describe_log_dirs(silent={}), within_s, f"node {node_id} to answer")
        if not is_online():
            admin.bring_log_dir_online(node_id, path)
        wait_until(is_online, within_s, f"{path} to be online")

    def connect(self, **options: object) -> Cluster:
        """A client of its own, logged in."""
        return Cluster(**{"default_api_timeout_ms": 10_000, **self.client_options(), **options})
