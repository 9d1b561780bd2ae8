"""Invariants of the quorum, checked after every step (RELIABILITY 3.2, 3.3). Mutants are judged by their names.

Reads the core's description and the disks below it, and changes neither.
"""

from __future__ import annotations

from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.machine import Machine
from jepsen.sim.mirrors import METADATA, Mirrors
from quorum.metadata.check import violations
from quorum.metadata.image import EMPTY, Image
from quorum.raft import QuorumState, Raft, RaftRole, VoterKey
from quorumlog.ids import Epoch, NodeId, Offset


@dataclass(slots=True)
class _Known:
    """The last seen state of one process."""

    life: int = 0
    epoch: Epoch = -1
    role: RaftRole | None = None
    leader_id: NodeId | None = None
    high_watermark: Offset = -1
    image: Image = EMPTY


class QuorumInvariants:
    """leaders: the leader of each epoch. image: the newest committed image that any node has published.

    lied_about: hosts that probes were made to take for dead although they live.
    """

    def __init__(
        self, machines: list[Machine], controllers: list[Machine], mirrors: Mirrors, findings: Findings
    ) -> None:
        self._controllers, self._mirrors, self._findings = controllers, mirrors, findings
        self._truth = mirrors.truth(METADATA)
        self._known = {machine.host: _Known() for machine in machines}
        self.leaders: dict[Epoch, NodeId] = {}
        self.lied_about: dict[str, None] = {}
        self._votes: dict[tuple[str, Epoch], VoterKey] = {}  # durable votes, by host and epoch
        self._durable_epochs: dict[str, Epoch] = {}
        self._hashes: dict[Offset, tuple[int, str]] = {0: (EMPTY.state_hash, "nobody")}
        self.image = EMPTY

    @property
    def committed_end(self) -> Offset:
        return self._truth.end

    def after(self, machine: Machine) -> None:
        """Called after each step of this machine's process."""
        node = machine.node
        if node is None or node.driver is None:
            return
        known = self._known[machine.host]
        if known.life != machine.life:
            known = self._known[machine.host] = _Known(life=machine.life)
        raft = raft_of(machine)
        if raft is not None:
            self._check_raft(machine, raft, known)
        if node.loader.image is not known.image:
            known.image = node.loader.image
            self._on_image(machine.host, known.image)

    def forget_disk(self, host: str) -> None:
        """An operator put an older state in the place of this voter's: what it promised since then is gone."""
        self._durable_epochs.pop(host, None)
        self._votes = {key: voted for key, voted in self._votes.items() if key[0] != host}

    def on_state_file(self, machine: Machine, state: QuorumState) -> None:
        """`quorum-state` is durable with this content."""
        before = self._durable_epochs.get(machine.host, 0)
        if state.epoch < before:
            self._findings.broken("epoch-monotonic", f"{machine.host} went from epoch {before} back to {state.epoch}")
        self._durable_epochs[machine.host] = max(before, state.epoch)
        if state.voted is not None:
            first = self._votes.setdefault((machine.host, state.epoch), state.voted)
            if first != state.voted:
                who = f"{first.node_id} and then {state.voted.node_id}"
                self._findings.broken("vote-once", f"{machine.host} voted in epoch {state.epoch} for {who}")

    # --- roles and high watermarks ---

    def _check_raft(self, machine: Machine, raft: Raft, known: _Known) -> None:
        role, high_watermark = raft.role, raft.high_watermark
        if raft.epoch != known.epoch or role is not known.role or raft.leader_id != known.leader_id:
            self._on_role(machine, raft, known)
            known.epoch, known.role, known.leader_id = raft.epoch, role, raft.leader_id
        if high_watermark != known.high_watermark:
            self._on_high_watermark(machine, raft, known.high_watermark)
            known.high_watermark = high_watermark

    def _on_role(self, machine: Machine, raft: Raft, known: _Known) -> None:
        if raft.epoch < known.epoch:
            self._findings.broken("epoch-monotonic", f"{machine.host}: {known.epoch} -> {raft.epoch}")
        if raft.leader_id is not None:
            first = self.leaders.setdefault(raft.epoch, raft.leader_id)
            if first != raft.leader_id:
                who = f"{first}, and {machine.host} follows {raft.leader_id}"
                self._findings.broken("election-safety", f"epoch {raft.epoch} is led by {who}")
        if raft.epoch == known.epoch and raft.leader_id is None and known.leader_id is not None:
            self._check_forgotten(machine, known.leader_id, raft.epoch)
        became_leader = raft.role is RaftRole.LEADER and known.role is not RaftRole.LEADER
        if became_leader and raft.end_offset < self._truth.end:
            ends = f"its log ends at {raft.end_offset}, {self._truth.end} is committed"
            self._findings.broken("leader-completeness", f"{machine.host} leads epoch {raft.epoch}; {ends}")

    def _check_forgotten(self, machine: Machine, leader_id: NodeId, epoch: Epoch) -> None:
        """A voter forgets a leader within its epoch only if the leader resigned or its process ended."""
        for leader in self._controllers:
            raft = raft_of(leader)
            leads = raft is not None and (raft.role, raft.epoch) == (RaftRole.LEADER, epoch)
            if (
                machine in self._controllers
                and leader.node_id == leader_id
                and leads
                and leader.host not in self.lied_about
            ):
                self._findings.broken(
                    "living-leader-kept", f"{machine.host} forgets {leader.host}, which leads {epoch}"
                )

    def _on_high_watermark(self, machine: Machine, raft: Raft, before: Offset) -> None:
        high_watermark = raft.high_watermark
        if high_watermark < before:
            self._findings.broken("commit-monotonic", f"{machine.host}: {before} -> {high_watermark}")
        mirror = self._mirrors.of(machine, METADATA)
        self._truth.on_committed(mirror, high_watermark, machine.host)
        if raft.role is not RaftRole.LEADER or raft.leader_id != raft.node_id:
            return
        epoch = mirror.epoch_before(high_watermark)
        if epoch != raft.epoch:
            what = f"{machine.host} commits up to {high_watermark} in epoch {raft.epoch}"
            self._findings.broken("commit-rule", f"{what}: the last record is of epoch {epoch}")
        self._check_majority(machine, high_watermark)

    def _check_majority(self, leader: Machine, high_watermark: Offset) -> None:
        chain = self._mirrors.of(leader, METADATA).chain_at(high_watermark)
        holders = []
        for machine in self._controllers:
            mirror = self._mirrors.of(machine, METADATA)
            if mirror.durable_end() >= high_watermark and mirror.chain_at(high_watermark) == chain:
                holders.append(machine.host)
        if len(holders) <= len(self._controllers) // 2:
            what = f"{leader.host} commits up to {high_watermark}"
            self._findings.broken("committed-is-durable", f"{what}, which only {holders} have on disk")

    # --- images ---

    def _on_image(self, host: str, image: Image) -> None:
        known = self._hashes.setdefault(image.offset, (image.state_hash, host))
        if known[0] != image.state_hash:
            what = f"images at {image.offset} differ between {known[1]} and {host}"
            self._findings.broken("state-machine-safety", what)
        if image.offset > self.image.offset:
            self.image = image
            for violation in violations(image):
                self._findings.broken("metadata-structure", f"{host} at {image.offset}: {violation}")


def raft_of(machine: Machine) -> Raft | None:
    """The quorum core of a machine; None until it is started."""
    node = machine.node
    if node is None or node.driver is None:
        return None
    return node.driver.raft
