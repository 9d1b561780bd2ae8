"""Snapshots of the metadata, on every disk.

- snapshot-equals-replay: a finished file gives the image that the committed log gives at its offset.
- snapshot-of-committed: it ends where a committed batch ends.
- snapshot-at-log-start: where a log begins after offset 0, a snapshot beside it reaches its first offset.
- log-start-is-committed (truth.py): no log begins after what is committed, or inside a batch.
- leader-loads-no-snapshot: the node that leads the quorum loads no snapshot into its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.metadata.quorum import raft_of
from jepsen.sim.machine.disk import file_at, names_in
from jepsen.sim.machine.machine import Machine
from jepsen.sim.quorum.committed_log import CommittedLog
from jepsen.sim.settings import METADATA_LOG
from jepsen.sim.truth.mirrors import METADATA, Mirrors
from quorumlog_quorum.metadata.snapshot_records import ImageBuilder
from quorumlog_quorum.raft import RaftRole
from quorumlog_quorum.snapshots.codec import values_of
from quorumlog_quorum.snapshots.names import DAMAGED_SUFFIX, PART_SUFFIX, SUFFIX, parse_snapshot_name
from quorumlog_storage.files.names import LOG_SUFFIX
from quorumlog_storage.rules.fetch_rule import SnapshotId

_CUTS = ("unlink", "rename", "crash")


class SnapshotInvariants(Invariant):
    """written: finished files, taken or fetched. loaded: by nodes, at a start or later. removed: by retention.

    set_aside: by a running node, as damaged.
    """

    def __init__(self, log: CommittedLog, mirrors: Mirrors, findings: Findings) -> None:
        self._log, self._mirrors, self._findings = log, mirrors, findings
        self.written = self.loaded = self.removed = self.set_aside = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {
            "snapshots written": self.written,
            "snapshots loaded": self.loaded,
            "snapshots removed": self.removed,
            "set aside while running": self.set_aside,
        }

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        if kind == "rename" and path.startswith(METADATA_LOG):
            if path.endswith(PART_SUFFIX):
                self._on_written(machine, path)
            elif path.endswith(SUFFIX):
                self._on_removed(machine, path)
        if kind in _CUTS and (kind == "crash" or path.endswith(LOG_SUFFIX)):
            self._check_start(machine)

    def on_loaded(self, machine: Machine) -> None:
        """A node begins to load a snapshot into its metadata."""
        self.loaded += 1
        raft = raft_of(machine)
        if raft is not None and raft.role.role is RaftRole.LEADER and raft.epoch in self._log.epochs:
            what = f"{machine.host} leads {raft.epoch} and loads a snapshot"
            self._findings.broken("leader-loads-no-snapshot", what)

    def _on_written(self, machine: Machine, part: str) -> None:
        name = part.rpartition("/")[2].removesuffix(PART_SUFFIX).rpartition("-")[0] + SUFFIX
        snapshot = parse_snapshot_name(name)
        content = file_at(machine.disk, f"{METADATA_LOG}/{name}", durable=False)
        if snapshot is None or content is None:
            return
        self.written += 1
        want = self._log.hash_at(snapshot.offset)
        if want is None:
            what = f"{machine.host}: {name}; committed are {self._log.image.offset}"
            self._findings.broken("snapshot-of-committed", what)
        elif want != _state_hash(content, snapshot):
            self._findings.broken("snapshot-equals-replay", f"{machine.host}: {name} differs from the log")

    def _on_removed(self, machine: Machine, path: str) -> None:
        is_kept = path.rpartition("/")[2].removesuffix(SUFFIX) + DAMAGED_SUFFIX in names_in(machine.disk, METADATA_LOG)
        if not is_kept:
            self.removed += 1
        elif raft_of(machine) is not None:
            self.set_aside += 1

    def _check_start(self, machine: Machine) -> None:
        base = self._mirrors.of(machine, METADATA).base
        if not base:
            return
        names = names_in(machine.disk, METADATA_LOG)
        offsets = [found.offset for name in names if (found := parse_snapshot_name(name)) is not None]
        if max(offsets, default=0) < base:
            what = f"the log of {machine.host} begins at {base}; its snapshots end at {offsets}"
            self._findings.broken("snapshot-at-log-start", what)


def _state_hash(content: bytes, snapshot: SnapshotId) -> int:
    builder = ImageBuilder()
    for _ in builder.add(values_of(content)):
        pass
    return builder.finish().apply(snapshot.offset, snapshot.epoch).state_hash
