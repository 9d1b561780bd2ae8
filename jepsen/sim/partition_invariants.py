"""Invariants of partitions, checked after every step (RELIABILITY 1.3, 3.4). Mutants are judged by their names.

- high-watermark-on-disk: a leader's high watermark covers only what every member of its maximal ISR has synced.
- committed-differs, committed-is-held: all nodes that commit an offset commit the same bytes (truth.py).
- partition-leader-completeness: a leader holds everything ever committed, up to its own epoch. Metadata reaches brokers
  late, so a leader may keep an old epoch for a while, in which it cannot commit anything.
- candidate-completeness: every member of the ISR and ELR in the committed metadata holds all of it too, synced.
- acked-is-durable: a record acknowledged with acks=all is synced on min.insync.replicas disks.

All topics here are `durability=synced` with min.insync.replicas 2 and without unclean elections.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.replicas.replica import Replica
from jepsen.checkers.findings import Findings
from jepsen.sim.machine import Machine
from jepsen.sim.mirrors import Mirrors
from quorum.metadata.image import Image
from quorum.metadata.registration import PartitionRegistration
from quorumlog.ids import Epoch, NodeId, Offset, Uuid

MIN_ISR = 2


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


class PartitionInvariants:
    """leader_changes: how often a replica became leader."""

    def __init__(self, brokers: list[Machine], mirrors: Mirrors, findings: Findings) -> None:
        self._brokers = {machine.node_id: machine for machine in brokers}
        self._mirrors, self._findings = mirrors, findings
        self._known: dict[tuple[str, int], dict[tuple[Uuid, int], _Known]] = {}  # by host and life
        self._registrations: dict[str, PartitionRegistration] = {}  # by log, as in the newest image
        self._suspicions: list[_Suspicion] = []
        self._metadata_end: Offset = 0
        self._image_offset: Offset = 0
        self.leader_changes = 0
        self.isr_changes = 0

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

    def on_image(self, image: Image, metadata_end: Offset) -> None:
        """image: the newest committed one. metadata_end: end of the committed metadata, published or not."""
        self._metadata_end, self._image_offset = metadata_end, image.offset
        for topic in image.sorted_topics():
            for index, partition in topic.sorted_partitions():
                log = f"{topic.name}-{index}"
                if self._registrations.get(log) is not partition:
                    self._registrations[log] = partition
                    self.isr_changes += 1
                    self.check_candidates(log)
        suspicions, self._suspicions = self._suspicions, []
        for suspicion in suspicions:
            self._judge(suspicion)

    def on_metadata_end(self, metadata_end: Offset) -> None:
        self._metadata_end = metadata_end

    def on_acked(self, log: str, offset: Offset, value: bytes) -> None:
        """A producer got an acknowledgement, with acks=all, for this record at this offset."""
        holders = []
        for machine in self._brokers.values():
            mirror = self._mirrors.of(machine, log)
            if mirror.durable_end() > offset and mirror.contains(offset, value):
                holders.append(machine.host)
        if len(holders) < MIN_ISR:
            what = f"{value.decode()} was acknowledged at {offset} of {log}"
            self._findings.broken("acked-is-durable", f"{what} but is only on the disks of {holders}")

    # --- one replica ---

    def _on_leader(self, machine: Machine, replica: Replica) -> None:
        self.leader_changes += 1
        truth, epoch = self._mirrors.truth(replica.name), replica.core.leader_epoch
        if not truth.is_seen_by(self._mirrors.of(machine, replica.name), epoch):
            what = f"{machine.host} leads {replica.name} in epoch {epoch}"
            lacks = f"without the records committed up to {truth.end_of(epoch)}"
            self._findings.broken("partition-leader-completeness", f"{what} {lacks}")

    def _on_high_watermark(self, machine: Machine, replica: Replica) -> None:
        core, truth = replica.core, self._mirrors.truth(replica.name)
        mirror = self._mirrors.of(machine, replica.name)
        before = truth.end
        truth.on_committed(mirror, core.high_watermark, machine.host)
        if core.is_leader:
            self._check_isr(machine, replica)
        if truth.end > before:
            self.check_candidates(replica.name)

    def _check_isr(self, machine: Machine, replica: Replica) -> None:
        core = replica.core
        chain = self._mirrors.of(machine, replica.name).chain_at(core.high_watermark)
        for member in sorted(core.isr_state.maximal):
            mirror = self._mirrors.of(self._brokers[member], replica.name)
            if mirror.durable_end() < core.high_watermark or mirror.chain_at(core.high_watermark) != chain:
                what = f"{machine.host} commits {replica.name} up to {core.high_watermark}"
                held = f"{self._brokers[member].host}, in the ISR, has synced up to {mirror.durable_end()}"
                self._findings.broken("high-watermark-on-disk", f"{what}; {held}")

    # --- candidates ---

    def check_candidates(self, log: str) -> None:
        """Call whenever candidates, commits or disks may have changed."""
        partition = self._registrations.get(log)
        if partition is None:
            return
        for node_id in _candidates(partition):
            if not self._holds(node_id, log):
                self._judge(_Suspicion(log, node_id, self._metadata_end))

    def _judge(self, suspicion: _Suspicion) -> None:
        partition = self._registrations[suspicion.log]
        if suspicion.node_id not in _candidates(partition) or self._holds(suspicion.node_id, suspicion.log):
            return
        if self._image_offset < suspicion.offset:
            self._suspicions.append(suspicion)  # newer candidates are committed, but no node has published them yet
            return
        host, end = self._brokers[suspicion.node_id].host, self._mirrors.truth(suspicion.log).end
        what = f"{host} may lead {suspicion.log} (ISR {partition.isr}, ELR {partition.eligible_leader_replicas})"
        self._findings.broken("candidate-completeness", f"{what} but lacks records committed up to {end}")

    def _holds(self, node_id: NodeId, log: str) -> bool:
        return self._mirrors.truth(log).is_held_by(self._mirrors.of(self._brokers[node_id], log))


def _candidates(partition: PartitionRegistration) -> tuple[NodeId, ...]:
    return (*partition.isr, *partition.eligible_leader_replicas)
