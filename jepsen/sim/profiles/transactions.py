"""Transactional clients (workload/transactions/transactions.py), some with ids as old as after many thousand
transactions: a record of their coordinator makes them so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from jepsen.checkers.findings import Finding
from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.coordinators.coordinators import coordinators_of
from jepsen.sim.invariants.coordinators.transaction_logs import TransactionLogs
from jepsen.sim.profiles.feature import Feature
from jepsen.sim.simulation import HEALING_S, Phases
from jepsen.sim.workload.activity import Aside
from jepsen.sim.workload.transactions.transactions import SETTINGS, Transactions
from jepsen.sim.workload.workload import Workload
from quorumlog.nursery import Nursery
from quorumlog_broker.coordinator.runtime.coordinator import Coordinator, State
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.coordinator.transactions.state.states import States
from quorumlog_broker.coordinator.transactions.state.table import EMPTY


def age(cluster: SimCluster, transactional_id: str, epoch: int) -> bool:
    """Let the id, which has no transaction open, go on behind `epoch`; False if no coordinator has it now."""
    for machine in cluster.brokers:
        if machine.loop is None or not machine.alive or machine.paused:
            continue
        for one in coordinators_of(machine):
            shard = one._shard
            if isinstance(shard, TransactionShard) and one.state is State.ACTIVE and shard._table.get(transactional_id):
                machine.loop.deliver(_age, one, transactional_id, epoch)
                return True
    return False


def _age(coordinator: Coordinator[Any], transactional_id: str, epoch: int) -> None:
    if coordinator.state is not State.ACTIVE:
        return
    shard = coordinator._shard
    value = shard._table.get(transactional_id)
    if value is None or value.transaction_status != EMPTY or shard._turn.is_pending(transactional_id):
        return
    coordinator._at_now()
    older = replace(value, producer_epoch=max(epoch, value.producer_epoch))
    States.put(shard._states, transactional_id, older)  # past those who look for a reason (decisions.py)
    coordinator._take()


class TransactionalClients(Aside):
    def __init__(self, clients: Workload) -> None:
        super().__init__(clients, "transactions")
        self.cluster = clients.cluster
        self._logs = TransactionLogs(self.cluster.invariants.mirrors, self.cluster.findings)
        self.transactions = Transactions(
            clients.rng,
            partial(clients.transport, self.loop),
            partial(clients.trusted, self.loop),
            partial(clients.admin, "transactions", self.loop),
            clients.clock,
            clients.now_ns,
            partial(age, self.cluster),
            late_requests=clients.late_requests,
        )

    async def run(self, nursery: Nursery) -> None:
        await self.transactions.run(nursery)

    def stop(self) -> None:
        self.transactions.stop()

    def read_all(self, phases: Phases) -> None:
        phases.perform(self.loop, self.transactions.read_all(), HEALING_S, "transactions-end")

    def check(self) -> list[Finding]:
        found = self.transactions.check()
        self._logs.at_the_end(self.cluster.image, self.cluster.machines)
        return found

    def exercised_enough(self, seconds: int) -> bool:
        return self.transactions.exercised_enough(seconds)

    @property
    def counts(self) -> Mapping[str, int]:
        return {**self.transactions.counts, **self._logs.exercised}


TRANSACTIONS = Feature(
    extra="transactions",
    settings=SETTINGS,
    activity=TransactionalClients,
    looks=lambda invariants: (invariants.coordinators,),
)
