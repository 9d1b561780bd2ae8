"""What every simulated cluster has, whatever its nodes are: machines, a network, time, and invariants."""

from __future__ import annotations

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.watched import BaseInvariants
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Verdict
from jepsen.sim.network.network import Interceptor, Network
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import Scheduler
from jepsen.sim.trace import Trace
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.raft import RaftRole


class BaseCluster:
    """machines: by host, controllers first.

    intercept: set by a nemesis to hold or drop single messages.
    """

    machines: dict[str, Machine]

    def __init__(self, seed: int, trace: Trace | None) -> None:
        self.scheduler = Scheduler(seed, trace)
        self.network = Network(self.scheduler)
        self.findings = Findings(lambda: self.scheduler.now_ns)
        self.intercept: Interceptor | None = None
        self.counts: dict[str, int] = {}  # of strikes and of what they and scripts did, by name
        self.clients: dict[str, SimLoop] = {}  # processes of clients, by host
        self.scripted = False  # True while a script of aimed.py runs
        self.network.intercept = self._on_message

    @property
    def invariants(self) -> BaseInvariants:
        raise NotImplementedError

    @property
    def controllers(self) -> list[Machine]:
        return [machine for machine in self.machines.values() if machine.config.is_controller]

    @property
    def brokers(self) -> list[Machine]:
        """Those in service."""
        return [machine for machine in self.machines.values() if machine.config.is_broker and machine.in_service]

    @property
    def image(self) -> Image:
        """The newest committed metadata that any node has published."""
        return self.invariants.quorum.image

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def start(self) -> None:
        for machine in self.machines.values():
            machine.format()
            machine.start()

    def active_controller(self) -> Machine | None:
        """The quorum's leader: of the nodes that claim to lead, the one with the highest epoch."""
        leading = [machine for machine in self.controllers if machine.alive and _leads(machine)]
        return max(leading, key=_epoch, default=None)

    def _on_message(self, message: Message) -> Verdict:
        self.invariants.on_message(message)
        return Verdict.PASS if self.intercept is None else self.intercept(message)

    def _on_death(self, machine: Machine, why: str) -> None:
        self.invariants.on_death(machine, why)


def _leads(machine: Machine) -> bool:
    driver = None if machine.node is None else machine.node.driver
    return driver is not None and driver.core is not None and driver.core.role.role is RaftRole.LEADER


def _epoch(machine: Machine) -> int:
    assert machine.node is not None and machine.node.driver is not None
    return machine.node.driver.announcements.epoch
