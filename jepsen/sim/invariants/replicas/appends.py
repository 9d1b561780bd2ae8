"""Which batches a life may append, checked at each write of a partition's log.

- registered-before-append: none before its broker has applied an image with its registration.
- appends-in-own-epoch: while it leads, only batches of the epoch in which it leads. Work that was queued before its
  leadership is done when it begins to lead.
- append-before-leading: none of the epoch that the metadata gave it, before its log is ready for that epoch.
- append-above-epoch: none of an epoch above the one that it knows: a follower takes none above that of its fetch.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.invariants.replicas.lives import LifeInvariants
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.log_mirror import Batch
from jepsen.sim.truth.mirrors import log_of
from quorumlog_broker.partition.partition import Role
from quorumlog_broker.replicas.replica import Replica


class AppendInvariants(Invariant):
    """appended: batches that were looked at."""

    def __init__(self, lives: LifeInvariants, findings: Findings) -> None:
        self._lives, self._findings = lives, findings
        self._replicas: dict[tuple[str, str], Replica] = {}  # by host and log; checked before use
        self.appended = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"appends checked": self.appended}

    def on_written(self, machine: Machine, log: str, batch: Batch) -> None:
        replica = self._replica(machine, log)
        if replica is None or machine.node is None:
            return
        self.appended += 1
        core = replica.core
        what = f"{machine.host}, life {machine.life}, appends [{batch.base}, {batch.end}) of epoch {batch.epoch}"
        if not self._lives.has_begun(machine):
            self._findings.broken("registered-before-append", f"{what} to {log}; it is not registered")
        elif core.is_leader and batch.epoch != core.leader_epoch:
            self._findings.broken("appends-in-own-epoch", f"{what} to {log}, which it leads in {core.leader_epoch}")
        elif core.role is Role.LEADER and not core.is_leader and batch.epoch == core.leader_epoch:
            self._findings.broken("append-before-leading", f"{what} to {log}; its log is not ready for that epoch")
        elif batch.epoch > core.leader_epoch:
            self._findings.broken("append-above-epoch", f"{what} to {log}; it knows epoch {core.leader_epoch}")

    def _replica(self, machine: Machine, log: str) -> Replica | None:
        plane = data_plane_of(machine)
        if plane is None:
            return None
        known = self._replicas.get((machine.host, log))
        if known is not None and plane.registry.replicas.get(known.key) is known:
            return known
        for replica in plane.registry.replicas.values():
            if log_of(replica) == log:
                self._replicas[machine.host, log] = replica
                return replica
        return None
