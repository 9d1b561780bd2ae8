"""Invariants of partitions, checked after every step. Mutants are judged by their names.

- high-watermark-on-disk: a leader's high watermark covers only what every member of its maximal ISR has synced.
- committed-differs, committed-is-held: all nodes that commit an offset commit the same bytes (truth.py).
- partition-leader-completeness: a leader holds everything that leaders up to its own epoch have committed. Metadata
  reaches brokers late, so a leader may keep an old epoch for a while, in which it cannot commit anything.
- candidate-completeness: every member of the ISR and ELR in the committed metadata holds all of it too, synced.
- acked-is-durable: a record acknowledged with acks=all is synced on min.insync.replicas disks.

Where a topic leaves durability to the page cache, "synced" means "written", and machines that lost power are left out
(durability.py, which says what such a topic promises).

No topic allows unclean elections. Nothing is promised about a topic that is deleted in
the newest committed metadata: each broker stops with it when it hears of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import COMPACTED_TOPIC
from jepsen.sim.truth.durability import Durability
from jepsen.sim.truth.mirrors import METADATA, Mirrors, log_id, log_of
from quorumlog.ids import Epoch, NodeId, Offset, Uuid
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import UNASSIGNED, PartitionRegistration


@dataclass(slots=True)
class _Known:
    """The last seen state of one replica in one process."""

    high_watermark: Offset = 0
    led: Epoch = -1


@dataclass(frozen=True, slots=True)
class _Suspicion:
    """A candidate lacks committed records. It is a violation unless metadata below `offset`, which is committed
    already, removes the candidate."""

    log: str
    node_id: NodeId
    offset: Offset


class PartitionInvariants(Invariant):
    """leader_changes: how often a replica became leader."""

    def __init__(self, brokers: list[Machine], mirrors: Mirrors, durability: Durability, findings: Findings) -> None:
        self._machines = brokers
        self._brokers = {machine.node_id: machine for machine in brokers}
        self._mirrors, self._durability, self._findings = mirrors, durability, findings
        self._known: dict[tuple[str, int], dict[tuple[Uuid, int], _Known]] = {}  # by host and life
        self._registrations: dict[str, PartitionRegistration] = {}  # by log, as in the newest image
        self._suspicions: list[_Suspicion] = []
        self._replaced: dict[str, dict[NodeId, Uuid]] = {}  # by log and broker: see forget_disk
        self._incarnations: dict[NodeId, Uuid] = {}  # as in the newest image
        self._directories: dict[NodeId, tuple[Uuid, ...]] = {}  # likewise
        self._image_offset: Offset = 0
        self.leader_changes = 0
        self.isr_changes = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"partition leaders": self.leader_changes, "partition changes": self.isr_changes}

    def after(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process."""
        if not changed:
            return
        known = self._known.setdefault((machine.host, machine.life), {})
        for replica in changed:
            core = replica.core
            if replica.log is None:
                continue
            seen = known.get(replica.key)
            if seen is None:
                seen = known[replica.key] = _Known()
            if core.is_leader and seen.led != core.leader_epoch:
                seen.led = core.leader_epoch
                seen.high_watermark = min(seen.high_watermark, core.high_watermark)
                self._on_leader(machine, replica)
            if core.high_watermark != seen.high_watermark:
                seen.high_watermark = core.high_watermark
                self._on_high_watermark(machine, replica)

    def on_image(self, image: Image) -> None:
        self._image_offset = image.offset
        self._incarnations = {node_id: broker.incarnation_id for node_id, broker in image.brokers.items()}
        self._directories = {node_id: broker.log_directories for node_id, broker in image.brokers.items()}
        before, self._registrations = self._registrations, {}
        changed = []
        for topic in image.sorted_topics():
            if topic.name == COMPACTED_TOPIC:
                continue
            for index, partition in topic.sorted_partitions():
                log = log_id(f"{topic.name}-{index}", topic.id)
                self._registrations[log] = partition
                if before.get(log) is not partition:
                    changed.append(log)
                    self._let_return(log, partition)
        for log in changed:
            self.isr_changes += 1
            self.check_candidates(log)
        suspicions, self._suspicions = self._suspicions, []
        for suspicion in suspicions:
            self._judge(suspicion)

    def forget_disk(self, log: str, machine: Machine) -> None:
        """A stopped broker gets an empty disk in the place of the one with this log.

        It may be called a candidate until its next process registers, and as long as the directory that the metadata
        name for the log is not one of that process: nobody elects it before.
        """
        self._replaced.setdefault(log, {})[machine.node_id] = self._incarnations[machine.node_id]

    def remember_disk(self, log: str, machine: Machine) -> None:
        """The stopped broker has the disk with this log again, as it was."""
        self._replaced.get(log, {}).pop(machine.node_id, None)

    def _let_return(self, log: str, partition: PartitionRegistration) -> None:
        """A broker whose disk was replaced counts again once another process of it has joined the ISR."""
        replaced = self._replaced.get(log, {})
        for node_id in [one for one in replaced if one in partition.isr]:
            if self._incarnations.get(node_id) != replaced[node_id]:
                del replaced[node_id]

    def knows(self, log: str) -> bool:
        """Whether the log's topic is in the newest committed metadata."""
        return log in self._registrations

    def on_cut(self, machine: Machine, log: str) -> None:
        self.check_candidates(log)

    def on_acked(self, logs: Sequence[str], offset: Offset, value: bytes, enough: int, *, deleted: bool) -> int:
        """A producer got an acknowledgement, with acks=all, for this record at this offset.

        logs: of all topics that have had this name, in their order. enough: disks that must hold it. deleted: someone
        has asked for the deletion of the last of these topics. Returns the number of the topic that holds it, from 1
        on; 0: none of them any more, for records and topics may be deleted before their acknowledgement arrives.
        """
        enough -= self._durability.count_lost(logs[-1]) + len(self._replaced.get(logs[-1], ()))
        if self._durability.has_losses(logs[-1]):
            return self.holder_of(logs, offset, value)
        for number in range(len(logs), 0, -1):
            holders = self._holders(logs[number - 1], offset, value)
            if holders:
                is_kept = offset >= self._mirrors.truth(logs[number - 1]).deleted_before
                if number == len(logs) and not deleted and is_kept and len(holders) < enough:
                    what = f"{value.decode()} was acknowledged at {offset} of {logs[-1]}"
                    self._findings.broken("acked-is-durable", f"{what} but is only on the disks of {holders}")
                return number
        if len(logs) == 1 and enough > 0 and not deleted and offset >= self._mirrors.truth(logs[0]).deleted_before:
            what = f"{value.decode()} was acknowledged at {offset} of {logs[0]}"
            self._findings.broken("acked-is-durable", f"{what} but is on no disk")
        return 0

    def holder_of(self, logs: Sequence[str], offset: Offset, value: bytes) -> int:
        """The number of the newest of these topics that has the record on some disk, from 1 on; 0: none has."""
        for number in range(len(logs), 0, -1):
            if any(self._mirrors.of(machine, logs[number - 1]).contains(offset, value) for machine in self._machines):
                return number
        return 0

    def _holders(self, log: str, offset: Offset, value: bytes) -> list[str]:
        mirrors = [(machine, self._mirrors.of(machine, log)) for machine in self._machines]
        end_of = self._durability.end_of
        return [m.host for m, mirror in mirrors if mirror.contains(offset, value) and end_of(log, mirror) > offset]

    # --- one replica ---

    def _on_leader(self, machine: Machine, replica: Replica) -> None:
        self.leader_changes += 1
        if log_of(replica) not in self._registrations:
            return  # its topic is deleted, and this broker does not know it yet
        truth, epoch = self._mirrors.truth(log_of(replica)), replica.core.leader_epoch
        mirror = self._mirrors.of_replica(machine, replica)
        if not truth.is_seen_by(mirror, epoch) and not self._durability.may_lead(log_of(replica), mirror):
            what = f"{machine.host} leads {replica.name} in epoch {epoch}"
            lacks = f"without the records committed up to {truth.end_of(epoch)}"
            self._findings.broken("partition-leader-completeness", f"{what} {lacks}")

    def _on_high_watermark(self, machine: Machine, replica: Replica) -> None:
        if log_of(replica) not in self._registrations:
            return  # its topic is deleted, and this broker does not know it yet
        core, truth = replica.core, self._mirrors.truth(log_of(replica))
        mirror = self._mirrors.of_replica(machine, replica)
        if not core.is_leader and self._durability.has_losses(log_of(replica)):
            return  # it may still have the records that were lost; its leader will have it cut them
        before = truth.end
        truth.on_committed(mirror, core.high_watermark, machine.host, core.leader_epoch)
        if core.is_leader:
            self._check_isr(machine, replica)
        if truth.end > before:
            self.check_candidates(log_of(replica))

    def _check_isr(self, machine: Machine, replica: Replica) -> None:
        core, log = replica.core, log_of(replica)
        replicas = self._registrations[log].replicas
        chain = self._mirrors.of_replica(machine, replica).chain_at(core.high_watermark)
        for member in sorted(core.isr_state.maximal):
            mirror = self._mirrors.of_replica(self._brokers[member], replica)
            end = self._durability.end_of(log, mirror)
            if member not in replicas or self._durability.has_lost(log, self._brokers[member]):
                continue  # it may delete, or has lost, what it acknowledged; candidates and copies are judged elsewhere
            if end < core.high_watermark or not mirror.agrees_at(core.high_watermark, chain or b""):
                what = f"{machine.host} commits {replica.name} up to {core.high_watermark}"
                held = f"{self._brokers[member].host}, in the ISR, may acknowledge up to {end}"
                self._findings.broken("high-watermark-on-disk", f"{what}; {held}")

    # --- candidates ---

    def check_candidates(self, log: str) -> None:
        """Call whenever candidates, commits or disks may have changed."""
        partition = self._registrations.get(log)
        if partition is None:
            return
        for node_id in _candidates(partition):
            if not self._holds(node_id, log):
                self._judge(_Suspicion(log, node_id, self._mirrors.truth(METADATA).end))

    def _judge(self, suspicion: _Suspicion) -> None:
        partition = self._registrations.get(suspicion.log)
        if (
            partition is None
            or suspicion.node_id not in _candidates(partition)
            or self._holds(suspicion.node_id, suspicion.log)
        ):
            return
        if self._image_offset < suspicion.offset:
            self._suspicions.append(suspicion)  # newer candidates are committed, but no node has published them yet
            return
        host, end = self._brokers[suspicion.node_id].host, self._mirrors.truth(suspicion.log).end
        what = f"{host} may lead {suspicion.log} (ISR {partition.isr}, ELR {partition.eligible_leader_replicas})"
        self._findings.broken("candidate-completeness", f"{what} but lacks records committed up to {end}")

    def _holds(self, node_id: NodeId, log: str) -> bool:
        if self._durability.holds(log, self._brokers[node_id]):
            return True
        forgotten, partition = self._replaced.get(log, {}).get(node_id), self._registrations.get(log)
        if forgotten is None or partition is None:
            return False
        directory = partition.directory(node_id)
        is_away = directory != UNASSIGNED and directory not in self._directories.get(node_id, ())
        return is_away or forgotten == self._incarnations.get(node_id)


def _candidates(partition: PartitionRegistration) -> tuple[NodeId, ...]:
    return (*partition.isr, *partition.eligible_leader_replicas)
