"""An operator moves replicas between the log directories of their brokers, and cancels some of the moves (KIP-113).

Each request goes to one broker, for one replica, mostly to the directory in which it does not lie. Asking for the
directory in which it lies cancels its move. What becomes of a request is looked at by invariants/placement/moves.py.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DIRECTORIES
from jepsen.sim.truth.mirrors import log_id
from jepsen.sim.truth.topics import Topic
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import RpcError

ASKED, CANCELS = "moves asked", "cancels of moves asked"
_GAP_S = (0.05, 0.8)
_LIMIT_S = 5.0  # for one request; a broker that stands still answers none
_TO_THE_OTHER, _CANCELLED = 0.9, 0.3  # shares: of the moves that lead elsewhere, and of those that are cancelled
_CANCELLED_AFTER_S = (0.0, 0.05, 0.5)


class MoveChore:
    """counts: acknowledged requests."""

    def __init__(self, cluster: SimCluster, rng: random.Random, admin: Callable[[], AsyncAdmin]) -> None:
        self._cluster, self._rng, self._admin = cluster, rng, admin
        self.stopping = False
        self.counts = {ASKED: 0, CANCELS: 0}

    async def run(self, topics: Callable[[], list[Topic]]) -> None:
        """Until `stopping`. topics: those that exist now."""
        while not self.stopping:
            await asyncio.sleep(self._rng.uniform(*_GAP_S))
            if not self.stopping and (open_topics := topics()):
                await self._move(self._rng.choice(open_topics))

    async def _move(self, topic: Topic) -> None:
        index, machine = self._rng.randrange(topic.partitions), self._rng.choice(self._cluster.brokers)
        here = self._directory(topic, index, machine)
        there = next(path for path in DIRECTORIES if path != here)
        path = there if self._rng.random() < _TO_THE_OTHER else here
        if not await self.ask(topic.name, index, machine.node_id, path):
            return
        self.counts[ASKED] += 1
        if self._rng.random() < _CANCELLED:
            await asyncio.sleep(self._rng.choice(_CANCELLED_AFTER_S))
            self.counts[CANCELS] += await self.ask(topic.name, index, machine.node_id, here)

    def _directory(self, topic: Topic, index: int, machine: Machine) -> str:
        mirror = self._cluster.invariants.mirrors.of(machine, log_id(f"{topic.name}-{index}", topic.ids[-1]))
        return mirror.path.rpartition("/")[0]

    async def ask(self, topic: str, index: int, broker: NodeId, path: str) -> bool:
        """Whether it was accepted."""
        async with self._admin() as admin:
            try:
                async with asyncio.timeout(_LIMIT_S):
                    await admin.alter_replica_log_dirs({(topic, index, broker): path})
            except (QuorumlogError, RpcError, TimeoutError):
                return False
        return True
