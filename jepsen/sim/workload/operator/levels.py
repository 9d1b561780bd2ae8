"""Software of different age in one cluster: nodes are replaced one by one, the operator raises and lowers the level.

At first every node supports metadata.version OLD_LEVEL at most, and knows no call that has an older one. One after the
other is restarted with newer software, now and then with the older one again. All the while the operator asks for the
highest level, mostly too early. Once it is in force, no node goes back, and the operator lowers it and raises it again.

Invariant `level-is-supported`: no level is in force that a node has never supported; `check.py` sees the same of every
registered node, in every image.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FeatureUpdate
from quorumlog.messages.common import FeatureRange
from quorumlog.rpc.transport import RpcError
from quorumlog_quorum.metadata.features import LATEST_LEVEL, METADATA_VERSION, SUPPORTED

OLD_LEVEL = 2
OLD = (FeatureRange(name=METADATA_VERSION, min_level=1, max_level=OLD_LEVEL),)
UPGRADE, SAFE_DOWNGRADE = 1, 2
ROLLED_BACK = 0.2  # share of the nodes
_FIRST_S = (1.0, 8.0)  # until the first node is replaced, and between two of them: half of it
_STOP_S = 6.0  # for a clean stop; then the process is killed


class Levels:
    """counts: what happened, by name. `prepare` before the machines start; `run` is a task of a client's loop."""

    def __init__(self, cluster: SimCluster, rng: random.Random, admin: Callable[[], AsyncAdmin]) -> None:
        self.counts = {"levels raised": 0, "levels lowered": 0, "level refused": 0, "nodes upgraded": 0}
        self.stopping = False
        self._cluster, self._rng, self._admin = cluster, rng, admin
        self._machines = list(cluster.machines.values())
        self._never_new = {machine.host: None for machine in self._machines}

    def prepare(self) -> None:
        for machine in self._machines:
            machine.supported = OLD

    async def run(self) -> None:
        order = list(self._machines)
        self._rng.shuffle(order)
        for machine in order:
            await self._pause()
            await self._ask(LATEST_LEVEL, UPGRADE)
            await self._replace(machine, SUPPORTED)
            if self._rng.random() < ROLLED_BACK:
                await self._replace(machine, OLD)
                await self._replace(machine, SUPPORTED)
            if self.stopping:
                return
        while not self.stopping:
            await self._pause()
            level = self._cluster.image.metadata_version
            if level < LATEST_LEVEL:
                await self._ask(LATEST_LEVEL, UPGRADE)
            else:
                await self._ask(self._rng.randint(1, OLD_LEVEL), SAFE_DOWNGRADE)

    async def _pause(self) -> None:
        await asyncio.sleep(self._rng.uniform(*_FIRST_S) / 2)
        while self._cluster.scripted and not self.stopping:  # noqa: ASYNC110 - a script needs the processes it has chosen
            await asyncio.sleep(0.5)

    async def _replace(self, machine: Machine, supported: tuple[FeatureRange, ...]) -> None:
        if self.stopping:
            return
        machine.supported = supported
        if supported is SUPPORTED:
            self._never_new.pop(machine.host, None)
            self.counts["nodes upgraded"] += 1
        life = machine.life
        await self._in_an_event(machine.stop)
        for _ in range(int(_STOP_S / 0.1)):
            if not machine.alive or machine.life != life:
                break
            await asyncio.sleep(0.1)
        if machine.life == life:
            await self._in_an_event(lambda: self._start_again(machine, life))

    def _start_again(self, machine: Machine, life: int) -> None:
        if machine.life == life:
            machine.kill()
            machine.bring_up()

    async def _in_an_event(self, act: Callable[[], None]) -> None:
        """Of the scheduler: this task runs inside a step of a client."""
        self._cluster.scheduler.call_later(NS_PER_MS, act)
        await asyncio.sleep(0.01)

    async def _ask(self, level: int, kind: int) -> None:
        never_new = list(self._never_new)
        async with self._admin() as admin:
            try:
                await admin.update_features([FeatureUpdate(name=METADATA_VERSION, level=level, upgrade_type=kind)])
            except RequestFailed as error:
                if error.code is ErrorCode.INVALID_UPDATE_VERSION:
                    self.counts["level refused"] += 1
                return
            except (QuorumlogError, RpcError):
                return
        self.counts["levels raised" if kind == UPGRADE else "levels lowered"] += 1
        if level > OLD_LEVEL and never_new:
            what = f"level {level} was finalized, and {never_new} have never supported it"
            self._cluster.findings.broken("level-is-supported", what)
