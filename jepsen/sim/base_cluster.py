"""What every simulated cluster has, whatever its nodes are: machines, a network, time, and invariants."""

from __future__ import annotations

from jepsen.checkers.findings import NODE_CRASHED, Findings
from jepsen.sim.invariants.quorum import QuorumInvariants
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Verdict
from jepsen.sim.network.network import Interceptor, Network
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import Scheduler
from jepsen.sim.trace import Trace
from jepsen.sim.truth.disk_events import DiskEvents
from jepsen.sim.truth.mirrors import Mirrors
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.raft import RaftRole


class BaseInvariants:
    """crashes_expected: hosts with failing disks, whose processes may end themselves.

    sick_directories: hosts with a directory that fails beside one that serves: a process goes on, but may not start.
    """

    quorum: QuorumInvariants  # once there are machines

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.mirrors = Mirrors(findings)
        self.disk_events = DiskEvents()
        self.crashes_expected: dict[str, None] = {}
        self.sick_directories: dict[str, None] = {}
        self.crashes = 0

    def on_message(self, message: Message) -> None:
        """A message is about to leave its host."""
        raise NotImplementedError

    def on_death(self, machine: Machine, why: str) -> None:
        """A process ended itself."""
        self.crashes += 1
        may_not_start = machine.host in self.sick_directories and why.startswith("start: ")
        if machine.host not in self.crashes_expected and not may_not_start:
            self.findings.broken(NODE_CRASHED, f"{machine.host}: {why}")


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
