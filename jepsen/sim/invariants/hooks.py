"""All invariants of a simulated cluster, with one hook for each kind of event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.checkers.history import Send
from jepsen.sim.base_cluster import BaseInvariants
from jepsen.sim.invariants.answers import AnswerInvariants
from jepsen.sim.invariants.appends import AppendInvariants
from jepsen.sim.invariants.calls import CallInvariants
from jepsen.sim.invariants.controller_answers import ControllerAnswers
from jepsen.sim.invariants.coordinators import CoordinatorInvariants
from jepsen.sim.invariants.deletions import DeletionInvariants
from jepsen.sim.invariants.directories import DirectoryInvariants
from jepsen.sim.invariants.fetches import FetchInvariants
from jepsen.sim.invariants.forgetting import ForgettingInvariants
from jepsen.sim.invariants.group_logs import GroupLogs
from jepsen.sim.invariants.index_rot import IndexRot
from jepsen.sim.invariants.invariant import Invariant, overridden
from jepsen.sim.invariants.leaderships import Leaderships
from jepsen.sim.invariants.level_states import LevelStates
from jepsen.sim.invariants.lives import LifeInvariants
from jepsen.sim.invariants.log_parts import LogPartsInvariants
from jepsen.sim.invariants.metadata_transactions import MetadataTransactions
from jepsen.sim.invariants.moves import MoveInvariants
from jepsen.sim.invariants.new_disks import NewDiskInvariants
from jepsen.sim.invariants.offsets import OffsetInvariants
from jepsen.sim.invariants.partitions import PartitionInvariants
from jepsen.sim.invariants.pre_votes import PreVotes
from jepsen.sim.invariants.producers import ProducerInvariants
from jepsen.sim.invariants.promises import Promises
from jepsen.sim.invariants.quorum import QuorumInvariants
from jepsen.sim.invariants.racks import RackInvariants
from jepsen.sim.invariants.reassignments import ReassignmentInvariants
from jepsen.sim.invariants.replacements import ReplacementInvariants
from jepsen.sim.invariants.replica_watch import ReplicaWatch
from jepsen.sim.invariants.retention import RetentionInvariants
from jepsen.sim.invariants.tails import TailInvariants
from jepsen.sim.invariants.throttles import ThrottleInvariants
from jepsen.sim.invariants.transactions import TransactionLogs
from jepsen.sim.invariants.unclean_elections import UncleanElectionInvariants
from jepsen.sim.invariants.vote_promises import durable_state
from jepsen.sim.machine.machine import LOSING, Machine
from jepsen.sim.network.message import Message
from jepsen.sim.network.watched_transport import OnOutcome
from jepsen.sim.settings import COMPACTED_TOPIC, CONTROLLERS, METADATA_LOG
from jepsen.sim.truth.durability import Durability
from jepsen.sim.truth.log_mirror import Batch
from jepsen.sim.truth.mirrors import METADATA
from jepsen.sim.workload.topics import Topic
from quorumlog.ids import Offset
from quorumlog.messages.fetch import FetchRequest
from quorumlog_quorum.metadata.image import Image


class Invariants(BaseInvariants):
    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self._brokers: dict[str, Machine] = {}

    def watch(self, machines: dict[str, Machine]) -> None:
        """Call once, before anything starts."""
        self.machines = machines
        everyone = list(machines.values())
        self.quorum = QuorumInvariants(everyone, [machines[host] for host in CONTROLLERS], self.mirrors, self.findings)
        self.metadata_transactions = MetadataTransactions(self.findings)
        self.mirrors.truth(METADATA).on_growth = self.metadata_transactions.on_growth
        self.quorum.on_image = self.metadata_transactions.check_image
        self._brokers = {host: machine for host, machine in machines.items() if machine.config.is_broker}
        brokers = list(self._brokers.values())
        self.durability = Durability(brokers, self.mirrors, self.findings.now_ns)
        self.partitions = PartitionInvariants(brokers, self.mirrors, self.durability, self.findings)
        self.lives = LifeInvariants(self.findings)
        self.tails = TailInvariants(self.mirrors, self.findings)
        self.rot = IndexRot(brokers, self.findings)
        self.log_parts = LogPartsInvariants(self.mirrors, self.findings, self.rot.is_rotten)
        self.producers = ProducerInvariants(self.mirrors, self.findings)
        self.directories = DirectoryInvariants(
            self.mirrors, self.findings, self.crashes_expected, self.sick_directories
        )
        self.new_disks = NewDiskInvariants(self.durability, self.findings)
        self.moves = MoveInvariants(brokers, self.findings)
        self.reassignments = ReassignmentInvariants(self.findings)
        self.forgetting = ForgettingInvariants(self.findings)
        self.replacements = ReplacementInvariants(brokers, self.durability, self.findings)
        self.unclean = UncleanElectionInvariants(machines, self.mirrors, self.findings)
        self.racks = RackInvariants(len(brokers), self.findings)
        self.coordinators = CoordinatorInvariants(self.mirrors, self.findings)
        self.group_logs = GroupLogs(self.mirrors, self.findings)
        self.transaction_logs = TransactionLogs(self.mirrors, self.findings)
        self._replicas = ReplicaWatch()
        self.offsets = OffsetInvariants(self.durability, self.findings)
        self.retention = RetentionInvariants(self.mirrors, self.findings)
        self.deletions = DeletionInvariants(self.findings)
        self.level_states = LevelStates(self.findings)
        self.leaderships = Leaderships(self.mirrors)
        self.answers = AnswerInvariants(self.leaderships, self.mirrors, self.findings)
        self.fetches = FetchInvariants(self.offsets, self.mirrors, self.findings)
        self.throttles = ThrottleInvariants(brokers, self.mirrors, self.findings)
        self.appends = AppendInvariants(self.lives, self.findings)
        self.mirrors.on_written = self._on_written
        self.promises = Promises(machines, self.mirrors, self.durability, self.findings, self.lives.on_fetch)
        self._pre_votes = PreVotes(machines, self.findings)
        self.calls = CallInvariants(self.findings)
        self.controller_answers = ControllerAnswers(self.mirrors.truth(METADATA), self.findings)
        self._image: Image | None = None
        self._listen()

    def _listen(self) -> None:
        """Whose hooks are called, and in which order."""
        everyone: tuple[Invariant, ...] = (
            self.directories, self.retention, self.partitions, self.new_disks, self.moves, self.lives,
            self.coordinators, self.reassignments, self.forgetting, self.replacements, self.racks, self.level_states,
            self.tails, self.log_parts, self.producers, self.offsets, self.leaderships, self.deletions, self.answers,
        )  # fmt: skip
        self._on_image = overridden(everyone, "on_image")
        self._after_step = overridden(everyone, "after_step")
        self._after = overridden(everyone, "after_step", "after")
        self._on_cut = overridden(everyone, "on_cut")
        self._on_disk = overridden(everyone, "on_disk")

    @property
    def reassigning_counts(self) -> dict[str, int]:
        """Of what an operator does in the profile `reassign`."""
        return self.reassignments.counts | self.throttles.counts | self.forgetting.counts

    def on_touch(self, machine: Machine) -> None:
        """Called after each step of this machine's process."""
        self.quorum.after(machine)
        self.partitions.on_metadata_end(self.quorum.committed_end)
        if self.quorum.image is not self._image:
            self._image = self.quorum.image
            self.durability.on_image(self._image)
            for on_image in self._on_image:
                on_image(self._image)
            self.partitions.on_registrations(self._image, self.quorum.committed_end)
        if machine.host in CONTROLLERS:
            self.unclean.after(machine)
        if self.mirrors.cut:
            self._after_cuts(machine)
        if machine.host in self._brokers:
            changed = self._replicas.changed(machine)
            if changed:
                changed = [replica for replica in changed if replica.topic != COMPACTED_TOPIC]
            for after in self._after if changed else self._after_step:
                after(machine, changed)

    def _after_cuts(self, machine: Machine) -> None:
        """Some log became shorter, on this machine or on one that lost power, and may have lost required records."""
        logs = list(self.mirrors.cut)
        self.mirrors.cut.clear()
        for log in logs:
            if log != METADATA:
                self.partitions.check_candidates(log)
                for on_cut in self._on_cut:
                    on_cut(machine, log)

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        if kind == LOSING and machine.host in self._brokers:
            self.durability.on_power_cut(machine)
        self.mirrors.on_disk(machine, kind, path)
        for on_disk in self._on_disk:
            on_disk(machine, kind, path)
        self.disk_events.on_disk(machine, kind, path)
        if machine.host in CONTROLLERS and (kind == "crash" or (kind == "sync_directory" and path == METADATA_LOG)):
            self.quorum.on_state_file(machine, durable_state(machine))

    def on_message(self, message: Message) -> None:
        self.promises.look(message)
        self._pre_votes.look(message)
        self.calls.look(message)
        self.unclean.look(message, self.quorum.image)

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
            self.throttles.on_fetched(machine, request, response)
        elif response is not None:
            self.answers.on_produced(machine, request, response)

    def on_asked(self, machine: Machine, request: Any) -> OnOutcome:
        """A request that a controller answers has come to a node's internal listener."""
        return self.controller_answers.on_asked(machine, request)

    def _on_written(self, machine: Machine, log: str, batch: Batch) -> None:
        if log != METADATA:
            self.appends.on_written(machine, log, batch)

    def at_the_end(self) -> None:
        """After convergence, all replicas of a log must be equal and hold all committed records.

        Of a topic that is deleted no broker may have a log any more.
        """
        self.coordinators.at_the_end(self.machines)
        self.new_disks.at_the_end(self.quorum.image, list(self._brokers.values()))
        for machine in [one for one in self._brokers.values() if one.in_service]:
            self.answers.at_the_end(machine)
            self.directories.check_copies(machine)
            self._check_expired(machine)
        for truth in self.mirrors.truths():
            if self._is_deleted(truth.name):
                self._must_be_gone(truth.name)
        for what in self.behind():
            self.findings.broken("replicas-converge", what)

    def behind(self) -> Iterator[str]:
        """The replicas that do not hold all that is committed now."""
        for truth in self.mirrors.truths():
            if self._is_deleted(truth.name):
                continue
            hosts = list(CONTROLLERS) if truth.name == METADATA else self._hosts_of(truth.name)
            for host in hosts:
                if not self.durability.holds(truth.name, self.machines[host]):
                    end = self.mirrors.of(self.machines[host], truth.name).end
                    yield f"{truth.name}: {host} ends at {end}, {truth.end} is committed"

    def _is_deleted(self, log: str) -> bool:
        return log != METADATA and not self.partitions.knows(log)

    def _check_expired(self, machine: Machine) -> None:
        node = machine.node
        assert node is not None and node.broker is not None, f"{machine.host} has not healed"
        for replica in node.broker.data_plane.registry.replicas.values():
            self.retention.at_the_end(machine, replica, machine.config.replication.retention_check_interval_ms)

    def _hosts_of(self, log: str) -> list[str]:
        """The brokers that are replicas of it."""
        replicas = self.reassignments.replicas_of(log)
        return [host for host, machine in self._brokers.items() if machine.node_id in replicas]

    def _must_be_gone(self, log: str) -> None:
        for host, machine in self._brokers.items():
            if self.mirrors.of(machine, log).is_here:
                self.findings.broken("deleted-logs-go", f"{log} of a deleted topic is still on the disk of {host}")
