"""An operator replaces brokers by new ones with other ids: put up, drain, stop, unregister (docs/operations.md).

All replicas of the old broker go to others by reassignment, the new one among them. Then it is stopped for good and
unregistered, and its disks are thrown away: nobody may need them. Topics go on coming meanwhile, and the controller may
place replicas on a broker that is about to go; so the operator looks again until nothing names it.

If the clients end before the old broker is drained, both stay. From its stop on the replacement is carried through.
What must hold is in invariants/placement/replacements.py.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import BROKERS
from jepsen.sim.truth.topics import Topic
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import NodeId
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorumlog.rpc.transport import RpcError
from quorumlog_quorum.metadata.registration import PartitionRegistration

REPLACED = "brokers replaced by others"
_BEGINS_S = (0.5, 2.0)
_LOOK_S, _STOP_S = 0.3, 6.0
_LIMIT_S = 5.0  # for one request


class ReplacementChore:
    """leaving: the broker that is being drained, for those who place replicas. counts: replacements carried through."""

    def __init__(self, cluster: SimCluster, rng: random.Random, admin: Callable[[], AsyncAdmin]) -> None:
        self._cluster, self._rng, self._admin = cluster, rng, admin
        self.stopping = False
        self.leaving: NodeId | None = None
        self.counts = {REPLACED: 0}

    async def run(self, topics: Callable[[], list[Topic]]) -> None:
        """Until `stopping`, or until no spare is left."""
        for host in self._cluster.layout.spares:
            await asyncio.sleep(self._rng.uniform(*_BEGINS_S))
            await self._until(lambda: bool(topics()) or self.stopping)
            old = self._rng.choice([one for one in self._cluster.brokers if one.host in BROKERS])
            if not self.stopping:
                await self._replace(old, self._cluster.machines[host])

    @property
    def targets(self) -> list[NodeId]:
        """Brokers on which replicas may be placed now."""
        return sorted(one.node_id for one in self._cluster.brokers if one.node_id != self.leaving)

    async def _replace(self, old: Machine, new: Machine) -> None:
        new.in_service = True
        new.start()
        await self._until(lambda: new.node_id in self._cluster.image.brokers)
        self.leaving = old.node_id
        while self._held_by(old):
            if self.stopping:
                self.leaving = None
                return
            await self._drain(old)
        await self._take_out_of_service(old)
        while old.node_id in self._cluster.image.brokers:
            await self._unregister(old)
        while self._held_by(old):  # what was placed on it before its session ended
            await self._drain(old)
        self._cluster.invariants.replacements.on_gone(old)
        for directory in old.config.directories:
            old.exchange_directory(directory, None)
        self.leaving = None
        self.counts[REPLACED] += 1

    async def _until(self, condition: Callable[[], bool]) -> None:
        """As an operator looks again and again: what changes is somewhere else."""
        while True:
            if condition():
                return
            await asyncio.sleep(_LOOK_S)

    async def _take_out_of_service(self, old: Machine) -> None:
        """It stops in order if it can, and is killed if it takes too long. Nothing starts it again."""
        old.in_service = False
        old.stop()
        for _ in range(int(_STOP_S / _LOOK_S)):
            if not old.alive:
                break
            await asyncio.sleep(_LOOK_S)
        old.kill()

    def _held_by(self, old: Machine) -> dict[str, dict[int, PartitionRegistration]]:
        """The partitions that name it, by topic and index."""
        found: dict[str, dict[int, PartitionRegistration]] = {}
        for topic in self._cluster.image.sorted_topics():
            for index, partition in topic.sorted_partitions():
                if old.node_id in partition.replicas:
                    found.setdefault(topic.name, {})[index] = partition
        return found

    async def _drain(self, old: Machine) -> None:
        """Ask for other replicas wherever its removal is not under way, and give them time."""
        wanted = tuple(
            ReassignableTopic(
                name=name,
                partitions=tuple(
                    ReassignablePartition(index=index, replicas=self._without(partition, old.node_id))
                    for index, partition in partitions.items()
                    if old.node_id not in partition.removing_replicas
                ),
            )
            for name, partitions in self._held_by(old).items()
        )
        wanted = tuple(topic for topic in wanted if topic.partitions)
        if wanted:
            async with self._admin() as admin:
                try:
                    async with asyncio.timeout(_LIMIT_S):
                        await admin._link.call_any(AlterPartitionReassignmentsRequest(topics=wanted))
                except (QuorumlogError, RpcError, TimeoutError):
                    pass
        await asyncio.sleep(_LOOK_S)

    def _without(self, partition: PartitionRegistration, old: NodeId) -> tuple[NodeId, ...]:
        kept = [one for one in partition.replicas if one != old and one not in partition.removing_replicas]
        others = [one for one in self.targets if one not in kept]
        return (*kept, self._rng.choice(others)) if others else tuple(kept)

    async def _unregister(self, old: Machine) -> None:
        async with self._admin() as admin:
            try:
                async with asyncio.timeout(_LIMIT_S):
                    await admin.unregister_broker(old.node_id)
            except (QuorumlogError, RpcError, TimeoutError):
                pass
        await asyncio.sleep(_LOOK_S)
