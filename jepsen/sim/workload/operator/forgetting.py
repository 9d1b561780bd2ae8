"""An operator unregisters brokers, running ones and dead ones (UnregisterBroker, decision 64).

As the command does it without --force, one that holds the only copy in sync of a partition is left alone. A broker that
runs registers again by itself, one that is down when it starts again, with the disks that it had. What becomes of a
request is looked at by invariants/placement/forgetting.py.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.truth.topics import Topic
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import RpcError

FORGOTTEN = "brokers unregistered"
_GAP_S = (2.0, 8.0)
_LIMIT_S = 5.0  # for one request


class ForgettingChore:
    """counts: acknowledged requests."""

    def __init__(
        self,
        cluster: SimCluster,
        rng: random.Random,
        admin: Callable[[], AsyncAdmin],
        targets: Callable[[], list[NodeId]],
    ) -> None:
        """targets: brokers that may be unregistered now, and come back."""
        self._cluster, self._rng, self._admin, self._targets = cluster, rng, admin, targets
        self.stopping = False
        self.counts = {FORGOTTEN: 0}

    async def run(self, topics: Callable[[], list[Topic]]) -> None:
        """Until `stopping`."""
        while not self.stopping:
            await asyncio.sleep(self._rng.uniform(*_GAP_S))
            broker_id = self._rng.choice(self._targets())
            if not self.stopping and topics() and not self._is_needed(broker_id):
                self.counts[FORGOTTEN] += await self._forget(broker_id)

    def _is_needed(self, broker_id: NodeId) -> bool:
        return any(
            {*partition.isr, *partition.eligible_leader_replicas} <= {broker_id}
            for topic in self._cluster.image.sorted_topics()
            for _, partition in topic.sorted_partitions()
        )

    async def _forget(self, broker_id: NodeId) -> bool:
        """The registration that is there now, whichever it is."""
        async with self._admin() as admin:
            try:
                async with asyncio.timeout(_LIMIT_S):
                    await admin.unregister_broker(broker_id)
            except (QuorumlogError, RpcError, TimeoutError):
                return False
        return True
