"""Drivers of joint transactions (workload/transactions/joint.py)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from jepsen.checkers.findings import Finding
from jepsen.sim.invariants.coordinators.transaction_logs import TransactionLogs
from jepsen.sim.profiles.feature import Feature
from jepsen.sim.simulation import HEALING_S, Phases
from jepsen.sim.workload.activity import Aside
from jepsen.sim.workload.transactions.joint import SETTINGS, Joint
from jepsen.sim.workload.workload import Workload
from quorumlog.nursery import Nursery


class _Drivers(Aside):
    def __init__(self, clients: Workload) -> None:
        super().__init__(clients, "joint")
        self._cluster = clients.cluster
        self._logs = TransactionLogs(self._cluster.invariants.mirrors, self._cluster.findings)
        self._joint = Joint(
            lambda name: clients.rng(f"joint/{name}"),
            partial(clients.transport, self.loop),
            partial(clients.admin, "joint", self.loop),
            clients.clock,
            clients.now_ns,
        )

    async def run(self, nursery: Nursery) -> None:
        await self._joint.run(nursery)

    def stop(self) -> None:
        self._joint.stop()

    def read_all(self, phases: Phases) -> None:
        phases.perform(self.loop, self._joint.go_on(), 2 * HEALING_S, "joint-goes-on")
        phases.perform(self.loop, self._joint.read_all(), HEALING_S, "joint-ends")

    def check(self) -> list[Finding]:
        image, machines = self._cluster.image, self._cluster.machines
        levels = self._cluster.invariants.coordinators.joint_levels
        found = self._joint.check(self._logs.joint(image, machines), levels)
        self._logs.at_the_end(image, machines)
        return found

    def exercised_enough(self, seconds: int) -> bool:
        return self._joint.exercised_enough(seconds)

    @property
    def counts(self) -> Mapping[str, int]:
        return {**self._joint.counts, **self._logs.exercised}


JOINT = Feature(
    extra="joint", settings=SETTINGS, activity=_Drivers, looks=lambda invariants: (invariants.coordinators,)
)
