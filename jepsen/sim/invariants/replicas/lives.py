"""Invariants of a broker's life, that is of one process with its own incarnation id.

A life takes part in partitions only after it has applied an image with its own registration. The controller takes an
earlier life of the broker out of every leadership and every ISR before it registers the next one, so a leadership in an
image without this life's registration belongs to another life.

- leads-in-own-life: a replica begins to lead only while the image that its broker applied last has this life's
  registration.
- one-life-leads-an-epoch: no two lives lead the same partition in the same leader epoch.
- registered-before-append: until then no log changes, neither by an append as leader or follower nor by a truncation.
  Each single append is looked at by appends.py, each answer to a producer by answers.py.
- fetches-in-own-life: a follower's fetch acknowledges records, so it leaves only in a registered life.

A registration may be removed while the process runs. What it led it may lead until it has carried the image out, in
which others lead; and it goes on following: its broker epoch keeps it out of every ISR (broker_incarnation.py).
"""

from __future__ import annotations

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from quorumlog.ids import Epoch, Offset
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica
from quorumlog_server.process.node import Node

_Life = tuple[str, int]  # host and number of its process


class LifeInvariants(Invariant):
    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._begun: dict[_Life, None] = {}  # lives that were registered
        self._led: dict[tuple[PartitionKey, Epoch], _Life] = {}
        self._leads: dict[_Life, dict[PartitionKey, Epoch]] = {}  # what was looked at
        self._ends: dict[_Life, dict[PartitionKey, Offset]] = {}  # of lives that are not registered; exclusive

    def after_step(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process."""
        node = machine.node
        if node is None or node.broker is None:
            return
        life = (machine.host, machine.life)
        if not changed and life in self._begun:  # most steps
            return
        registered = is_registered(node)
        if registered:
            self._begun[life] = None
        has_begun = life in self._begun
        leads = self._leads.setdefault(life, {})
        replicas = changed if has_begun else node.broker.data_plane.registry.replicas.values()
        for replica in replicas:  # a log can change without a step of its core
            core = replica.core
            if core.is_leader and (not has_begun or leads.get(replica.key) != core.leader_epoch):
                leads[replica.key] = core.leader_epoch
                self._on_leader(machine, replica, registered)
            if not has_begun:
                self._on_log(machine, replica)
        if has_begun:
            self._ends.pop(life, None)

    def has_begun(self, machine: Machine) -> bool:
        """The process has applied an image with its registration."""
        is_known = (machine.host, machine.life) in self._begun
        return is_known or (
            machine.node is not None and machine.node.broker is not None and is_registered(machine.node)
        )

    def on_fetch(self, machine: Machine) -> None:
        """A follower's fetch is about to leave the machine."""
        node = machine.node
        if node is not None and node.broker is not None and not self.has_begun(machine):
            what = f"life {machine.life} of {machine.host} fetches as a replica"
            self._findings.broken("fetches-in-own-life", f"{what}; the metadata it applied has no registration of it")

    def _on_leader(self, machine: Machine, replica: Replica, registered: bool) -> None:
        epoch = replica.core.leader_epoch
        what = f"life {machine.life} of {machine.host} leads {replica.name} in epoch {epoch}"
        if not registered:
            self._findings.broken("leads-in-own-life", f"{what}; the metadata it applied has no registration of it")
        host, life = self._led.setdefault((replica.key, epoch), (machine.host, machine.life))
        if (host, life) != (machine.host, machine.life):
            self._findings.broken("one-life-leads-an-epoch", f"{what}, as life {life} of {host} did")

    def _on_log(self, machine: Machine, replica: Replica) -> None:
        if replica.log is None:
            return
        ends, end = self._ends.setdefault((machine.host, machine.life), {}), replica.log.end_offset
        before = ends.setdefault(replica.key, end)
        if before != end:
            what = f"life {machine.life} of {machine.host} is not registered"
            self._findings.broken("registered-before-append", f"{what}; {replica.name} went from {before} to {end}")
            ends[replica.key] = end


def is_registered(node: Node) -> bool:
    """Whether the image that the broker applied last has the registration of this process."""
    assert node.broker is not None
    own = node.broker.data_plane.registry.image.brokers.get(node.config.node_id)
    return own is not None and own.incarnation_id == node.incarnation_id
