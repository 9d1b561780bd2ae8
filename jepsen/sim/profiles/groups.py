"""Consumer groups (workload/groups/groups.py): their members, the settings with which they rebalance all the time,
checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from jepsen.checkers.findings import Finding
from jepsen.sim.invariants.coordinators.group_logs import GroupLogs
from jepsen.sim.profiles.feature import Feature
from jepsen.sim.simulation import HEALING_S, Phases
from jepsen.sim.workload.activity import Aside
from jepsen.sim.workload.groups.groups import SETTINGS, Groups
from jepsen.sim.workload.workload import Workload
from quorumlog.nursery import Nursery


class _Members(Aside):
    def __init__(self, clients: Workload) -> None:
        super().__init__(clients, "group")
        self._cluster = clients.cluster
        self._logs = GroupLogs(self._cluster.invariants.mirrors, self._cluster.findings)
        self._groups = Groups(
            clients.rng("groups"),
            partial(clients.transport, self.loop),
            partial(clients.admin, "groups", self.loop),
            clients.clock,
            clients.now_ns,
        )

    async def run(self, nursery: Nursery) -> None:
        await self._groups.run(nursery)

    def stop(self) -> None:
        self._groups.stop()

    def read_all(self, phases: Phases) -> None:
        phases.perform(self.loop, self._groups.read_all(), HEALING_S, "groups-are-served-again")

    def check(self) -> list[Finding]:
        invariants = self._cluster.invariants
        self._logs.at_the_end(self._cluster.image, self._cluster.machines)
        return self._groups.check(invariants.coordinators.expiries)

    @property
    def counts(self) -> Mapping[str, int]:
        return {**self._groups.counts, **self._logs.exercised}


GROUPS = Feature(
    extra="groups", settings=SETTINGS, activity=_Members, looks=lambda invariants: (invariants.coordinators,)
)
