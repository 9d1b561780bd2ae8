"""Invariants of the quorum, checked after every step. Mutants are judged by their names.

Reads the core's description and the disks below it, and changes neither. One row for each rule:

| row | findings |
|---|---|
| election safety, with what is on the disks | election-safety, epoch-monotonic |
| vote once, with directory ids and across crashes | vote-once; vote-granted-twice (vote_promises.py) |
| leader append-only | leader-append-only |
| log matching | log-matching (truth.py) |
| leader completeness | leader-completeness |
| state-machine safety | state-machine-safety; image-equals-replay, image-at-a-batch (quorum/committed_log.py) |
| the same, with transactions of metadata | image-outside-transactions (metadata_transactions.py) |
| commit monotonic | commit-monotonic; committed-differs (truth.py) |
| commit never truncated | committed-is-kept, committed-stays-durable |
| commit rule | commit-rule, committed-is-durable |
| persist before send | persist-before-vote, persist-before-candidacy, sync-before-quorum-fetch (vote_promises.py) |
| check quorum | write-without-a-quorum (quorum_contact.py) |
| bounded disruption | living-leader-kept; pre-vote-is-a-question (pre_votes.py); tests/sim/test_quorum_scenarios.py |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.metadata.durable_state import durable_state
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import METADATA_LOG
from jepsen.sim.truth.mirrors import METADATA, Mirrors
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog_quorum.metadata.check import violations
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.raft import Core, QuorumState, RaftRole, VoterKey, VoterSet
from quorumlog_quorum.raft.voters import have_overlapping_majorities, set_of
from quorumlog_storage.rules.fetch_rule import SnapshotId


@dataclass(slots=True)
class _Known:
    """The last seen state of one process."""

    life: int = 0
    epoch: Epoch = -1
    role: RaftRole | None = None
    leader_id: NodeId | None = None
    high_watermark: Offset = -1
    end: Offset = 0
    snapshots: tuple[SnapshotId, ...] = ()
    image: Image = EMPTY
    voters_at: Offset | None = None


class QuorumInvariants(Invariant):
    """leaders: the leader of each epoch. image: the newest committed image that any node has published.

    lied_about: hosts that probes were made to take for dead although they live.
    """

    def __init__(
        self, machines: list[Machine], controllers: list[Machine], mirrors: Mirrors, findings: Findings
    ) -> None:
        self._controllers, self._mirrors, self._findings = controllers, mirrors, findings
        self._voters: VoterSet | None = None  # of the leader that committed last
        self._truth = mirrors.truth(METADATA)
        self._known = {machine.host: _Known() for machine in machines}
        self.leaders: dict[Epoch, NodeId] = {}
        self.lied_about: dict[str, None] = {}
        self._votes: dict[tuple[str, Epoch], VoterKey] = {}  # durable votes, by host and epoch
        self._durable_epochs: dict[str, Epoch] = {}
        self._hashes: dict[Offset, tuple[int, str]] = {0: (EMPTY.state_hash, "nobody")}
        self._forgotten: dict[str, None] = {}  # hosts that do not hold what they once held
        self.image = EMPTY
        self.tell_published: Callable[[str, Image], None] = lambda _host, _image: None  # each that a node publishes
        self.snapshots = 0  # that some node took, fetched or found at its start
        self.installed = 0  # of them, those that took the place of a log

    @property
    def committed_end(self) -> Offset:
        return self._truth.end

    @property
    def exercised(self) -> Mapping[str, int]:
        return {
            "epochs led": len(self.leaders),
            "metadata": self.committed_end,
            "metadata snapshots": self.snapshots,
            "metadata snapshots fetched": self.installed,
        }

    def on_touch(self, machine: Machine) -> None:
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
        self._forgotten[host] = None
        self._durable_epochs.pop(host, None)
        self._votes = {key: voted for key, voted in self._votes.items() if key[0] != host}

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        is_state = kind == "crash" or (kind == "sync_directory" and path == METADATA_LOG)
        if is_state and machine.config.is_controller:
            self.on_state_file(machine, durable_state(machine))

    def on_state_file(self, machine: Machine, state: QuorumState) -> None:
        """`quorum-state` is durable with this content."""
        before = self._durable_epochs.get(machine.host, 0)
        if state.epoch < before:
            self._findings.broken("epoch-monotonic", f"{machine.host} went from epoch {before} back to {state.epoch}")
        self._durable_epochs[machine.host] = max(before, state.epoch)
        if state.leader_id is not None:
            self._on_leader(f"the disk of {machine.host} names", state.epoch, state.leader_id)
        if state.voted is not None:
            first = self._votes.setdefault((machine.host, state.epoch), state.voted)
            if first != state.voted:
                who = f"{first.node_id} and then {state.voted.node_id}"
                self._findings.broken("vote-once", f"{machine.host} voted in epoch {state.epoch} for {who}")

    # --- roles and high watermarks ---

    def _check_raft(self, machine: Machine, raft: Core, known: _Known) -> None:
        role, high_watermark, is_running = raft.role.role, raft.high_watermark, known.epoch >= 0
        if raft.epoch != known.epoch or role is not known.role or raft.leader_id != known.leader_id:
            self._on_role(machine, raft, known)
            known.epoch, known.role, known.leader_id = raft.epoch, role, raft.leader_id
            known.end = raft.log.accepted_end  # a new leader may have been cut before it was elected
        if raft.log.accepted_end != known.end:
            self._on_end(machine, raft, known.end)
            known.end = raft.log.accepted_end
        if raft.history.offset != known.voters_at:
            self._on_voters(machine, raft, known)
            known.voters_at = raft.history.offset
        if raft.log.snapshots != known.snapshots:
            self._on_snapshots(machine, raft, known.snapshots, is_running)
            known.snapshots = raft.log.snapshots
        if high_watermark != known.high_watermark:
            self._on_high_watermark(machine, raft, known.high_watermark)
            known.high_watermark = high_watermark

    def _on_role(self, machine: Machine, raft: Core, known: _Known) -> None:
        if raft.epoch < known.epoch:
            self._findings.broken("epoch-monotonic", f"{machine.host}: {known.epoch} -> {raft.epoch}")
        if raft.leader_id is not None:
            self._on_leader(f"{machine.host} follows", raft.epoch, raft.leader_id)
        if raft.epoch == known.epoch and raft.leader_id is None and known.leader_id is not None:
            self._check_forgotten(machine, known.leader_id, raft.epoch)
        became_leader = raft.role.role is RaftRole.LEADER and known.role is not RaftRole.LEADER
        if became_leader and not self._holds_all(machine, raft.log.accepted_end):
            ends = f"its log ends at {raft.log.accepted_end}, {self._truth.end} is committed"
            self._findings.broken("leader-completeness", f"{machine.host} leads epoch {raft.epoch}; {ends}")

    def _on_leader(self, who: str, epoch: Epoch, leader_id: NodeId) -> None:
        first = self.leaders.setdefault(epoch, leader_id)
        if first != leader_id:
            self._findings.broken("election-safety", f"epoch {epoch} is led by {first}, and {who} {leader_id}")

    def _holds_all(self, machine: Machine, end: Offset) -> bool:
        """Whether its log holds everything that is committed, byte by byte."""
        mirror = self._mirrors.of(machine, METADATA)
        return end >= self._truth.end and mirror.agrees_at(self._truth.end, self._truth.chain)

    def _on_end(self, machine: Machine, raft: Core, before: Offset) -> None:
        """The log, with what is queued to be written, ends elsewhere than after the last step."""
        if raft.log.accepted_end >= before:
            return
        if raft.role.role is RaftRole.LEADER:
            what = f"{machine.host}, which leads {raft.epoch}, goes back from {before} to {raft.log.accepted_end}"
            self._findings.broken("leader-append-only", what)
        if raft.log.accepted_end < raft.high_watermark:
            what = (
                f"{machine.host} goes back to {raft.log.accepted_end}, below its high watermark {raft.high_watermark}"
            )
            self._findings.broken("committed-is-kept", what)

    def _on_voters(self, machine: Machine, raft: Core, known: _Known) -> None:
        """Another voter set is in force here. Each set has a majority in common with the one before it."""
        offset, voters = raft.history.offset, raft.voters
        if offset is None or raft.role.role is not RaftRole.LEADER:
            return
        before = known.voters_at
        if before is not None and before >= raft.high_watermark:
            what = f"{machine.host} appends a voter set at {offset}, and the one at {before} is not committed"
            self._findings.broken("one-voter-set-open", what)
        held = raft.voter_records_at(offset)[1]
        if held is not None and not have_overlapping_majorities(set_of(held), voters):
            self._findings.broken("voter-sets-overlap", f"{machine.host} at {offset}: {set_of(held)} -> {voters}")

    def _check_forgotten(self, machine: Machine, leader_id: NodeId, epoch: Epoch) -> None:
        """A voter forgets a leader within its epoch only if the leader resigned or its process ended.

        One on a new disk, or one that lacks records, is no voter yet: it looks for a leader when it hears nothing.
        """
        for leader in self._controllers:
            raft = raft_of(leader)
            leads = raft is not None and (raft.role.role, raft.epoch) == (RaftRole.LEADER, epoch)
            own = raft_of(machine)
            if (
                own is not None
                and own.can_elect
                and leader.node_id == leader_id
                and leads
                and leader.host not in self.lied_about
            ):
                self._findings.broken(
                    "living-leader-kept", f"{machine.host} forgets {leader.host}, which leads {epoch}"
                )

    def _on_high_watermark(self, machine: Machine, raft: Core, before: Offset) -> None:
        high_watermark = raft.high_watermark
        if high_watermark < before:
            self._findings.broken("commit-monotonic", f"{machine.host}: {before} -> {high_watermark}")
        mirror = self._mirrors.of(machine, METADATA)
        self._truth.on_committed(mirror, high_watermark, machine.host)
        if raft.role.role is not RaftRole.LEADER or raft.leader_id != raft.node_id:
            return
        epoch = mirror.epoch_before(high_watermark)
        if epoch != raft.epoch:
            what = f"{machine.host} commits up to {high_watermark} in epoch {raft.epoch}"
            self._findings.broken("commit-rule", f"{what}: the last record is of epoch {epoch}")
        self._check_majority(machine, high_watermark)

    def _on_snapshots(self, machine: Machine, raft: Core, before: tuple[SnapshotId, ...], is_running: bool) -> None:
        """A log begins where its oldest snapshot ends. A snapshot is of committed records, and has their last epoch."""
        snapshots = raft.log.snapshots
        if raft.log.start > 0 and (not snapshots or snapshots[0].offset != raft.log.start):
            what = f"{machine.host}'s log begins at {raft.log.start}"
            self._findings.broken("snapshot-at-log-start", f"{what}; its snapshots are {snapshots}")
        for snapshot in snapshots:
            self._truth.deleted_before = max(self._truth.deleted_before, snapshot.offset)
            if snapshot not in before:
                self.snapshots += 1
                self._check_snapshot(machine, snapshot)
                self.installed += is_running and snapshots == (snapshot,) and raft.log.start == snapshot.offset
        # The only voter leads as soon as it has started, and may start from a snapshot. Retention raises the start of a
        # log to a snapshot that was there before, also on a leader that does not know yet what is committed.
        is_loaded = raft.log.start in [snapshot.offset for snapshot in snapshots if snapshot not in before]
        if is_running and is_loaded and raft.role.role is RaftRole.LEADER and raft.log.start > raft.high_watermark:
            what = f"{machine.host} leads {raft.epoch} and loads {snapshots}"
            self._findings.broken("leader-loads-no-snapshot", what)

    def _check_snapshot(self, machine: Machine, snapshot: SnapshotId) -> None:
        if snapshot.offset > self._truth.end:
            what = f"{machine.host} has {snapshot}; {self._truth.end} is committed"
            self._findings.broken("snapshot-is-committed", what)
            return
        mirrors = [self._mirrors.of(other, METADATA) for other in self._controllers]
        for mirror in mirrors:
            batch = mirror.batch_before(snapshot.offset)
            chain = self._truth.chain_at(snapshot.offset)
            if batch is not None and batch.end == snapshot.offset and batch.chain == chain:
                if batch.epoch != snapshot.epoch:
                    what = f"{machine.host} has {snapshot}; the record before it is of epoch {batch.epoch}"
                    self._findings.broken("snapshot-epoch", what)
                return

    def _check_majority(self, leader: Machine, high_watermark: Offset) -> None:
        chain = self._mirrors.of(leader, METADATA).chain_at(high_watermark)
        raft = raft_of(leader)
        assert raft is not None
        self._voters = raft.voters
        holders = self._holders(high_watermark, chain)
        if len(holders) < majority_of(raft.voters):
            what = f"{leader.host} commits up to {high_watermark}"
            self._findings.broken("committed-is-durable", f"{what}, which only {holders} have on disk")

    def _holders(self, end: Offset, chain: bytes | None) -> list[str]:
        """Voters whose disks hold this log up to `end`, after a power cut, too."""
        assert self._voters is not None
        voters = [machine for machine in self._controllers if machine.node_id in self._voters]
        mirrors = [(machine.host, self._mirrors.of(machine, METADATA)) for machine in voters]
        return [host for host, mirror in mirrors if mirror.durable_end() >= end and mirror.chain_at(end) == chain]

    def on_metadata_cut(self) -> None:
        """The metadata log on some disk may have become shorter."""
        if self._voters is None:
            return
        holders = [*self._holders(self._truth.end, self._truth.chain), *self._forgotten]
        if self._truth.end and len(dict.fromkeys(holders)) < majority_of(self._voters):
            what = f"{self._truth.end} is committed, and only {holders} have that on disk any more"
            self._findings.broken("committed-stays-durable", what)

    # --- images ---

    def _on_image(self, host: str, image: Image) -> None:
        self.tell_published(host, image)
        known = self._hashes.setdefault(image.offset, (image.state_hash, host))
        if known[0] != image.state_hash:
            what = f"images at {image.offset} differ between {known[1]} and {host}"
            self._findings.broken("state-machine-safety", what)
        if image.offset > self.image.offset:
            self.image = image
            for violation in violations(image):
                self._findings.broken("metadata-structure", f"{host} at {image.offset}: {violation}")


def majority_of(voters: VoterSet) -> int:
    """Counted here, because the production rule is under test."""
    return len(voters) // 2 + 1


def raft_of(machine: Machine) -> Core | None:
    """The quorum core of a machine; None until it is started."""
    node = machine.node
    if node is None or node.driver is None:
        return None
    return node.driver.core
