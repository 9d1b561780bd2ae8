"""What every simulated cluster watches, whatever its nodes are: truths, and invariants by their hooks."""

from __future__ import annotations

from typing import Any

from jepsen.checkers.findings import NODE_CRASHED, Findings
from jepsen.sim.invariants.invariant import Invariant, overridden
from jepsen.sim.invariants.metadata.quorum import QuorumInvariants
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message
from jepsen.sim.network.watched_transport import OnOutcome
from jepsen.sim.truth.disk_events import DiskEvents
from jepsen.sim.truth.log_mirror import LogMirror
from jepsen.sim.truth.mirrors import METADATA, Mirrors
from quorumlog.ids import Offset
from quorumlog_quorum.metadata.image import Image


class BaseInvariants:
    """Everything that is watched: the truths, which are told first, and the invariants, each in its turn.

    crashes_expected: hosts with failing disks, whose processes may end themselves.

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

    def listen(self, *everyone: Invariant) -> None:
        """Whose hooks are called from now on, and in which order. Call it when `quorum` is there."""
        self.everyone = everyone
        self._on_message = overridden(everyone, "on_message")
        self._on_admitted = overridden(everyone, "on_admitted")
        self._on_asked = overridden(everyone, "on_asked")
        self._on_growth = overridden(everyone, "on_growth")
        self._on_published = overridden(everyone, "on_published")
        self._after_controller = overridden(everyone, "after_controller")
        self._on_disk = overridden((*everyone, self.quorum), "on_disk")
        self.mirrors.truth(METADATA).on_growth = self._tell_growth
        self.quorum.tell_published = self._tell_published

    def exercised(self, *left_out: Invariant) -> dict[str, int]:
        """What all of them looked at, but for some."""
        found = dict[str, int]()
        for one in (self.quorum, *self.everyone):
            found |= {} if one in left_out else one.exercised
        return found | self.disk_events.counts

    def on_touch(self, machine: Machine) -> None:
        """Called after each step of this machine's process."""
        self.quorum.on_touch(machine)
        if machine.config.is_controller:
            for after in self._after_controller:
                after(machine)

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A disk has finished an operation."""
        self.disk_events.on_disk(machine, kind, path)
        for on_disk in self._on_disk:
            on_disk(machine, kind, path)

    def on_message(self, message: Message) -> None:
        """A message is about to leave its host."""
        for on_message in self._on_message:
            on_message(message)

    def on_admitted(self, message: Message) -> None:
        """A listener is about to carry out this request."""
        for on_admitted in self._on_admitted:
            on_admitted(message)

    def on_asked(self, machine: Machine, request: Any) -> OnOutcome:
        """A request that a controller answers has come to a node's internal listener."""
        asked = [on_asked(machine, request) for on_asked in self._on_asked]

        def on_outcome(outcome: Any) -> None:
            for told in asked:
                if told is not None:
                    told(outcome)

        return on_outcome

    def _tell_growth(self, mirror: LogMirror, before: Offset, after: Offset) -> None:
        for on_growth in self._on_growth:
            on_growth(mirror, before, after)

    def _tell_published(self, host: str, image: Image) -> None:
        for on_published in self._on_published:
            on_published(host, image)

    def on_death(self, machine: Machine, why: str) -> None:
        """A process ended itself."""
        self.crashes += 1
        may_not_start = machine.host in self.sick_directories and why.startswith("start: ")
        if machine.host not in self.crashes_expected and not may_not_start:
            self.findings.broken(NODE_CRASHED, f"{machine.host}: {why}")
