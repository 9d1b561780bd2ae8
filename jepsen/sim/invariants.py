"""All invariants of a simulated cluster, with one hook for each kind of event."""

from __future__ import annotations

from typing import Any

from jepsen.checkers.findings import NODE_CRASHED, Findings
from jepsen.checkers.history import Send
from jepsen.sim.answer_invariants import AnswerInvariants
from jepsen.sim.append_invariants import AppendInvariants
from jepsen.sim.call_invariants import CallInvariants
from jepsen.sim.disk_events import DiskEvents
from jepsen.sim.durability import Durability
from jepsen.sim.fetch_invariants import FetchInvariants
from jepsen.sim.leaderships import Leaderships
from jepsen.sim.life_invariants import LifeInvariants
from jepsen.sim.log_mirror import Batch
from jepsen.sim.log_parts_invariants import LogPartsInvariants
from jepsen.sim.machine import Machine
from jepsen.sim.message import Message
from jepsen.sim.mirrors import METADATA, Mirrors
from jepsen.sim.offset_invariants import OffsetInvariants
from jepsen.sim.partition_invariants import PartitionInvariants
from jepsen.sim.pre_votes import PreVotes
from jepsen.sim.promises import Promises, durable_state
from jepsen.sim.quorum_invariants import QuorumInvariants
from jepsen.sim.replica_watch import ReplicaWatch
from jepsen.sim.settings import BROKERS, CONTROLLERS, METADATA_LOG
from jepsen.sim.tail_invariants import TailInvariants
from jepsen.sim.topics import Topic
from quorum.metadata.image import Image
from quorumlog.ids import Offset
from quorumlog.messages.fetch import FetchRequest


class Invariants:
    """crashes_expected: hosts with failing disks, whose processes may end themselves."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.mirrors = Mirrors(findings)
        self.disk_events = DiskEvents()
        self.crashes_expected: dict[str, None] = {}
        self.crashes = 0
        self._brokers: dict[str, None] = dict.fromkeys(BROKERS)

    def watch(self, machines: dict[str, Machine]) -> None:
        """Call once, before anything starts."""
        self.machines = machines
        everyone = list(machines.values())
        self.quorum = QuorumInvariants(everyone, [machines[host] for host in CONTROLLERS], self.mirrors, self.findings)
        brokers = [machines[host] for host in BROKERS]
        self.durability = Durability(brokers, self.mirrors, self.findings.now_ns)
        self.partitions = PartitionInvariants(brokers, self.mirrors, self.durability, self.findings)
        self.lives = LifeInvariants(self.findings)
        self.tails = TailInvariants(self.mirrors, self.findings)
        self.log_parts = LogPartsInvariants(self.mirrors, self.findings)
        self._replicas = ReplicaWatch()
        self.offsets = OffsetInvariants(self.durability, self.findings)
        self.leaderships = Leaderships(self.mirrors)
        self.answers = AnswerInvariants(self.leaderships, self.mirrors, self.findings)
        self.fetches = FetchInvariants(self.offsets, self.mirrors, self.findings)
        self.appends = AppendInvariants(self.findings)
        self.mirrors.on_written = self._on_written
        self.promises = Promises(machines, self.mirrors, self.durability, self.findings, self.lives.on_fetch)
        self._pre_votes = PreVotes(machines, self.findings)
        self.calls = CallInvariants(self.findings)
        self._image: Image | None = None

    def on_touch(self, machine: Machine) -> None:
        """Called after each step of this machine's process."""
        self.quorum.after(machine)
        self.partitions.on_metadata_end(self.quorum.committed_end)
        if self.quorum.image is not self._image:
            self._image = self.quorum.image
            self.durability.on_image(self._image)
            self.partitions.on_image(self._image, self.quorum.committed_end)
        if self.mirrors.cut:
            self._after_cuts(machine)
        if machine.host in self._brokers:
            changed = self._replicas.changed(machine)
            self.partitions.after(machine, changed)
            self.lives.after(machine, changed)
            if changed:
                self.tails.after(machine, changed)
                self.log_parts.after(machine, changed)
                self.offsets.after(machine, changed)
                self.leaderships.after(machine, changed)

    def _after_cuts(self, machine: Machine) -> None:
        """Some log became shorter, on this machine or on one that lost power, and may have lost required records."""
        logs = list(self.mirrors.cut)
        self.mirrors.cut.clear()
        for log in logs:
            if log != METADATA:
                self.partitions.check_candidates(log)
                self.tails.on_cut(machine, log)
                self.answers.on_cut(machine, log)

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        if kind == "crash" and machine.host in self._brokers:
            self.durability.on_power_cut(machine)
        self.mirrors.on_disk(machine, kind, path)
        self.offsets.on_disk(machine, kind, path)
        self.disk_events.on_disk(machine, kind, path)
        if machine.host in CONTROLLERS and (kind == "crash" or (kind == "sync_directory" and path == METADATA_LOG)):
            self.quorum.on_state_file(machine, durable_state(machine))

    def on_message(self, message: Message) -> None:
        self.promises.look(message)
        self._pre_votes.look(message)
        self.calls.look(message)

    def on_acked(self, send: Send, topic: Topic) -> None:
        """Sets the life of the topic that took the record (History)."""
        logs = topic.logs(send.key[1])
        value, deleted = send.value.encode(), not topic.is_open
        send.life = self.partitions.on_acked(logs, send.offset, value, topic.min_isr, deleted=deleted)

    def life_of(self, topic: Topic, index: int, offset: Offset, value: str) -> int:
        """The life of the topic from which a record was read; 0 if its log is gone."""
        return self.partitions.holder_of(topic.logs(index), offset, value.encode())

    def on_delete_records(self, topic: Topic, index: int, before: Offset) -> None:
        """Someone asks to delete the records before this offset."""
        truth = self.mirrors.truth(topic.logs(index)[-1])
        truth.deleted_before = max(truth.deleted_before, before)

    def on_answer(self, machine: Machine, request: Any, response: Any) -> None:
        """A broker has answered a produce or fetch request; response: None for acks=0."""
        if isinstance(request, FetchRequest):
            self.fetches.on_fetched(machine, request, response)
        elif response is not None:
            self.answers.on_produced(machine, request, response)

    def _on_written(self, machine: Machine, log: str, batch: Batch) -> None:
        if log != METADATA:
            self.appends.on_written(machine, log, batch)

    def on_death(self, machine: Machine, why: str) -> None:
        """A process ended itself."""
        self.crashes += 1
        if machine.host not in self.crashes_expected:
            self.findings.broken(NODE_CRASHED, f"{machine.host}: {why}")

    def at_the_end(self) -> None:
        """After convergence, all replicas of a log must be equal and hold all committed records.

        Of a topic that is deleted no broker may have a log any more.
        """
        for host in BROKERS:
            self.answers.at_the_end(self.machines[host])
        for truth in self.mirrors.truths():
            if truth.name != METADATA and not self.partitions.knows(truth.name):
                self._must_be_gone(truth.name)
                continue
            hosts = CONTROLLERS if truth.name == METADATA else BROKERS
            for host in hosts:
                if not self.durability.holds(truth.name, self.machines[host]):
                    end = self.mirrors.of(self.machines[host], truth.name).end
                    what = f"{host} ends at {end}, {truth.end} is committed"
                    self.findings.broken("replicas-converge", f"{truth.name}: {what}")

    def _must_be_gone(self, log: str) -> None:
        for host in BROKERS:
            if self.mirrors.of(self.machines[host], log).is_here:
                self.findings.broken("deleted-logs-go", f"{log} of a deleted topic is still on the disk of {host}")
