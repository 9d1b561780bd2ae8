"""All invariants of a simulated cluster, with one hook for each kind of event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.checkers.history import Send
from jepsen.sim.invariants.coordinators.coordinators import CoordinatorInvariants
from jepsen.sim.invariants.invariant import Invariant, overridden
from jepsen.sim.invariants.metadata.calls import CallInvariants
from jepsen.sim.invariants.metadata.changed_by import ChangesAreSigned
from jepsen.sim.invariants.metadata.controller_answers import ControllerAnswers
from jepsen.sim.invariants.metadata.level_states import LevelStates
from jepsen.sim.invariants.metadata.metadata_transactions import MetadataTransactions
from jepsen.sim.invariants.metadata.pre_votes import PreVotes
from jepsen.sim.invariants.metadata.quorum import QuorumInvariants
from jepsen.sim.invariants.placement.directories import DirectoryInvariants
from jepsen.sim.invariants.placement.forgetting import ForgettingInvariants
from jepsen.sim.invariants.placement.moves import MoveInvariants
from jepsen.sim.invariants.placement.new_disks import NewDiskInvariants
from jepsen.sim.invariants.placement.racks import RackInvariants
from jepsen.sim.invariants.placement.reassignments import ReassignmentInvariants
from jepsen.sim.invariants.placement.replacements import ReplacementInvariants
from jepsen.sim.invariants.placement.throttles import ThrottleInvariants
from jepsen.sim.invariants.placement.unclean_elections import UncleanElectionInvariants
from jepsen.sim.invariants.replica_watch import ReplicaWatch
from jepsen.sim.invariants.replicas.answers import AnswerInvariants
from jepsen.sim.invariants.replicas.appends import AppendInvariants
from jepsen.sim.invariants.replicas.deletions import DeletionInvariants
from jepsen.sim.invariants.replicas.fetches import FetchInvariants
from jepsen.sim.invariants.replicas.index_rot import IndexRot
from jepsen.sim.invariants.replicas.leaderships import Leaderships
from jepsen.sim.invariants.replicas.lives import LifeInvariants
from jepsen.sim.invariants.replicas.log_parts import LogPartsInvariants
from jepsen.sim.invariants.replicas.near_reads import NearReadInvariants
from jepsen.sim.invariants.replicas.offsets import OffsetInvariants
from jepsen.sim.invariants.replicas.partitions import PartitionInvariants
from jepsen.sim.invariants.replicas.producers import ProducerInvariants
from jepsen.sim.invariants.replicas.promises import Promises
from jepsen.sim.invariants.replicas.retention import RetentionInvariants
from jepsen.sim.invariants.replicas.tails import TailInvariants
from jepsen.sim.invariants.security.logins import LoginInvariants
from jepsen.sim.invariants.security.quotas import QuotaInvariants
from jepsen.sim.invariants.security.rules import RuleInvariants
from jepsen.sim.invariants.security.served import ServedInvariants
from jepsen.sim.invariants.watched import BaseInvariants
from jepsen.sim.machine.machine import LOSING, Machine
from jepsen.sim.network.watched_transport import OnOutcome
from jepsen.sim.settings import COMPACTED_TOPIC, CONTROLLERS
from jepsen.sim.truth.durability import Durability
from jepsen.sim.truth.log_mirror import Batch
from jepsen.sim.truth.mirrors import METADATA
from jepsen.sim.truth.topics import Topic
from quorumlog.ids import Offset
from quorumlog.messages.fetch import FetchRequest
from quorumlog.rpc.transport import Context
from quorumlog.security.principal import Principal
from quorumlog_quorum.metadata.image import Image
from quorumlog_server.process.node import Node


class Invariants(BaseInvariants):
    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self._brokers: dict[str, Machine] = {}

    def watch(self, machines: dict[str, Machine]) -> None:
        """Call once, before anything starts."""
        self.machines = machines
        mirrors, findings = self.mirrors, self.findings
        self._brokers = {host: machine for host, machine in machines.items() if machine.config.is_broker}
        brokers = list(self._brokers.values())
        self.durability = Durability(brokers, mirrors, findings.now_ns)
        self._replicas = ReplicaWatch()
        self._image: Image | None = None
        self.quorum = QuorumInvariants(
            list(machines.values()), [machines[host] for host in CONTROLLERS], mirrors, findings
        )
        self.partitions = PartitionInvariants(brokers, mirrors, self.durability, findings)
        self.lives = LifeInvariants(findings)
        self.tails = TailInvariants(mirrors, findings)
        self.rot = IndexRot(brokers, findings)
        self.directories = DirectoryInvariants(mirrors, findings, self.crashes_expected, self.sick_directories)
        self.new_disks = NewDiskInvariants(self.durability, findings)
        self.moves = MoveInvariants(brokers, findings)
        self.reassignments = ReassignmentInvariants(findings)
        self.forgetting = ForgettingInvariants(findings)
        self.replacements = ReplacementInvariants(brokers, self.durability, findings)
        self.coordinators = CoordinatorInvariants(mirrors, findings)
        self.retention = RetentionInvariants(mirrors, findings)
        self.deletions = DeletionInvariants(findings)
        self.level_states = LevelStates(findings)
        self.throttles = ThrottleInvariants(brokers, mirrors, findings)
        self.near_reads = NearReadInvariants(findings)
        self.promises = Promises(machines, mirrors, self.durability, findings, self.lives.on_fetch)
        self.controller_answers = ControllerAnswers(mirrors.truth(METADATA), findings)
        offsets, leaderships = OffsetInvariants(self.durability, findings), Leaderships(mirrors)
        self.listen(
            MetadataTransactions(findings), ChangesAreSigned(findings),
            self.directories, self.retention, self.partitions, self.new_disks,
            self.moves, self.lives, self.coordinators, self.reassignments, self.forgetting,
            self.replacements, RackInvariants(len(brokers), findings),
            self.level_states, self.tails, self.rot, LogPartsInvariants(mirrors, findings, self.rot.is_rotten),
            ProducerInvariants(mirrors, findings), offsets, leaderships, self.deletions,
            AnswerInvariants(leaderships, mirrors, findings), FetchInvariants(offsets, mirrors, findings),
            self.near_reads,
            self.throttles, AppendInvariants(self.lives, findings), self.promises, PreVotes(machines, findings),
            CallInvariants(findings), UncleanElectionInvariants(machines, mirrors, findings), self.controller_answers,
            *self._of_security(machines),
        )  # fmt: skip

    def _of_security(self, machines: dict[str, Machine]) -> list[Invariant]:
        """None where the cluster knows none of its clients."""
        if not any(machine.config.rights.on for machine in machines.values()):
            return []
        rules = RuleInvariants(self.findings)
        return [
            rules,
            ServedInvariants(rules, self.findings),
            LoginInvariants(rules, self.findings),
            QuotaInvariants(rules, self.findings),
        ]

    def listen(self, *everyone: Invariant) -> None:
        super().listen(*everyone)
        self._on_image = overridden(everyone, "on_image")
        self._after_step = overridden(everyone, "after_step")
        self._after = overridden(everyone, "after_step", "after")
        self._on_cut = overridden(everyone, "on_cut")
        self._on_written = overridden(everyone, "on_written")
        self._on_produced = overridden(everyone, "on_produced")
        self._on_fetched = overridden(everyone, "on_fetched")
        self._at_the_end = overridden(everyone, "at_the_end")
        self._on_node = overridden(everyone, "on_node")
        self._on_login = overridden(everyone, "on_login")
        self._on_served = overridden(everyone, "on_served")
        self.mirrors.on_written = self._tell_written

    def on_touch(self, machine: Machine) -> None:
        super().on_touch(machine)
        if self.quorum.image is not self._image:
            self._image = self.quorum.image
            self.durability.on_image(self._image)
            for on_image in self._on_image:
                on_image(self._image)
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
                for on_cut in self._on_cut:
                    on_cut(machine, log)

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        if kind == LOSING and machine.host in self._brokers:
            self.durability.on_power_cut(machine)
        self.mirrors.on_disk(machine, kind, path)
        super().on_disk(machine, kind, path)

    def on_answer(self, machine: Machine, request: Any, response: Any) -> None:
        """A broker has answered a produce or fetch request; response: None for acks=0."""
        if isinstance(request, FetchRequest):
            for on_fetched in self._on_fetched:
                on_fetched(machine, request, response)
        elif response is not None:
            for on_produced in self._on_produced:
                on_produced(machine, request, response)

    # --- clients of a secured cluster ---

    def on_node(self, machine: Machine, node: Node) -> None:
        for on_node in self._on_node:
            on_node(machine, node)

    def on_login(self, machine: Machine, mechanism: str, principal: Principal) -> None:
        for on_login in self._on_login:
            on_login(machine, mechanism, principal)

    def on_served(self, machine: Machine, context: Context, request: Any) -> OnOutcome:
        asked = [told for on_served in self._on_served if (told := on_served(machine, context, request)) is not None]

        def on_outcome(outcome: Any) -> None:
            for told in asked:
                told(outcome)

        return on_outcome

    def _tell_written(self, machine: Machine, log: str, batch: Batch) -> None:
        if log != METADATA:
            for on_written in self._on_written:
                on_written(machine, log, batch)

    def exercised(self, *left_out: Invariant) -> dict[str, int]:
        return super().exercised(*left_out) | {
            "promises broken by power": self.durability.broken,
            "ends of logs lost": len(self.durability.losses),
        }

    # --- what clients saw ---

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

    # --- the end ---

    def at_the_end(self) -> None:
        """After convergence, all replicas of a log must be equal and hold all committed records.

        Of a topic that is deleted no broker may have a log any more.
        """
        for at_the_end in self._at_the_end:
            at_the_end(self.quorum.image, self.machines)
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

    def _hosts_of(self, log: str) -> list[str]:
        """The brokers that are replicas of it."""
        replicas = self.reassignments.replicas_of(log)
        return [host for host, machine in self._brokers.items() if machine.node_id in replicas]

    def _must_be_gone(self, log: str) -> None:
        for host, machine in self._brokers.items():
            if self.mirrors.of(machine, log).is_here:
                self.findings.broken("deleted-logs-go", f"{log} of a deleted topic is still on the disk of {host}")
