"""Transactional clients (workload/transactions/transactions.py), whose old ids come near the last epoch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from jepsen.checkers.findings import Finding
from jepsen.sim.invariants.coordinators.transaction_logs import TransactionLogs
from jepsen.sim.profiles.feature import Feature
from jepsen.sim.simulation import HEALING_S, Phases
from jepsen.sim.workload.activity import Aside
from jepsen.sim.workload.aging import age
from jepsen.sim.workload.transactions.transactions import SETTINGS, Transactions
from jepsen.sim.workload.workload import Workload
from quorumlog.nursery import Nursery


class _Clients(Aside):
    def __init__(self, clients: Workload) -> None:
        super().__init__(clients, "transactions")
        self._cluster = clients.cluster
        self._logs = TransactionLogs(self._cluster.invariants.mirrors, self._cluster.findings)
        self._transactions = Transactions(
            clients.rng,
            partial(clients.transport, self.loop),
            partial(clients.trusted, self.loop),
            partial(clients.admin, "transactions", self.loop),
            clients.clock,
            clients.now_ns,
            partial(age, self._cluster),
            late_requests=clients.late_requests,
        )

    async def run(self, nursery: Nursery) -> None:
        await self._transactions.run(nursery)

    def stop(self) -> None:
        self._transactions.stop()

    def read_all(self, phases: Phases) -> None:
        phases.perform(self.loop, self._transactions.read_all(), HEALING_S, "transactions-end")

    def check(self) -> list[Finding]:
        found = self._transactions.check()
        self._logs.at_the_end(self._cluster.image, self._cluster.machines)
        return found

    def exercised_enough(self, seconds: int) -> bool:
        return self._transactions.exercised_enough(seconds)

    @property
    def counts(self) -> Mapping[str, int]:
        return {**self._transactions.counts, **self._logs.exercised}


TRANSACTIONS = Feature(
    extra="transactions", settings=SETTINGS, activity=_Clients, looks=lambda invariants: (invariants.coordinators,)
)
