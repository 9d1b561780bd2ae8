"""Makes a transactional id as old as one that has had many thousand transactions, by a record of its coordinator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.coordinators.coordinators import coordinators_of
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
