"""One blow at one node: how it begins, what proves that it bit, and how it ends.

`end` is the operator's part as well: it starts a process that has ended, and restarts one whose directory is offline.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from jepsen.checkers.findings import Finding
from jepsen.live.cluster.nodes import LiveCluster
from jepsen.live.disks.ways import SPACE_BLOWS, DiskFault
from jepsen.live.plan import DISK_BLOWS, Blow
from quorumlog.ids import NodeId
from quorumlog.testing.nodes import NodeState
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN


@dataclass(slots=True)
class Evidence:
    """bit: the blow is known to have had its effect. notes: what was seen, in order. findings: promises it saw broken.

    spared: partitions that the blow must not touch, though its node leads them.
    """

    bit: bool = False
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    spared: tuple[int, ...] = ()

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def __str__(self) -> str:
        return "; ".join(self.notes)


class ActiveBlow(Protocol):
    """evidence: grows from `begin` to `end`."""

    evidence: Evidence

    def begin(self) -> None: ...

    def observe(self) -> None:
        """Called now and then while the blow holds."""
        ...

    def end(self) -> None:
        """The node works again, or is started. May be called twice, and without `begin`."""
        ...


class Killed:
    def __init__(self, cluster: LiveCluster, node_id: NodeId) -> None:
        self._nodes, self._node_id = cluster.nodes, node_id
        self.evidence = Evidence()

    def begin(self) -> None:
        process = self._nodes.process(self._node_id)
        if self._nodes.kill(self._node_id) and process is not None:
            self.evidence.bit = True
            self.evidence.note(f"process {process.pid} ended")

    def observe(self) -> None:
        pass

    def end(self) -> None:
        self._nodes.start([self._node_id])


class Paused:
    def __init__(self, cluster: LiveCluster, node_id: NodeId) -> None:
        self._nodes, self._node_id = cluster.nodes, node_id
        self.evidence = Evidence()

    def begin(self) -> None:
        self._nodes.pause(self._node_id)

    def observe(self) -> None:
        if self._nodes.state(self._node_id) is NodeState.PAUSED:
            self.evidence.bit = True
            self.evidence.note("the kernel told it stopped")

    def end(self) -> None:
        self.observe()
        self._nodes.resume(self._node_id)


class Stopped:
    """A clean restart."""

    def __init__(self, cluster: LiveCluster, node_id: NodeId) -> None:
        self._cluster, self._nodes, self._node_id = cluster, cluster.nodes, node_id
        self.evidence = Evidence()

    def begin(self) -> None:
        if self._nodes.stop([self._node_id]):
            self.evidence.note("it did not stop in time and was killed")
            return
        marked = [(path / CLEAN_SHUTDOWN).exists() for path in self._cluster.directories(self._node_id)]
        self.evidence.bit = all(marked)
        self.evidence.note(f"it marked {marked.count(True)} of {len(marked)} directories as closed cleanly")

    def observe(self) -> None:
        pass

    def end(self) -> None:
        self._nodes.start([self._node_id])


class DiskStruck:
    """A volume of the node fails, hangs, is full, or has less free space than the node's reserve."""

    def __init__(self, cluster: LiveCluster, node_id: NodeId, blow: Blow) -> None:
        self._cluster, self._nodes, self._node_id, self._blow = cluster, cluster.nodes, node_id, blow
        self._files = cluster.nodes.layout.node(node_id)
        self._fault: DiskFault | None = None
        self._log_from = 0  # bytes of the node's log before the blow
        self.evidence = Evidence()

    def begin(self) -> None:
        """Raises AttachFailed."""
        process = self._nodes.process(self._node_id)
        if process is None:
            return
        self._log_from = self._files.log.stat().st_size
        volume = self._cluster.volumes[self._node_id]
        self._fault = self._cluster.ways.strike(self._blow, self._files, volume, process.pid)

    def observe(self) -> None:
        for path in self._cluster.offline_directories(self._node_id) or []:
            self.evidence.note(f"{Path(path).parent.name}/{Path(path).name} offline")
        if self._nodes.state(self._node_id) is NodeState.STOPPED:
            self.evidence.note("the node ended itself")

    def end(self) -> None:
        if self._fault is None:
            return
        self.observe()
        fault, self._fault = self._fault, None
        struck = fault.struck()
        fault.end()
        self._judge(struck)
        if self._nodes.state(self._node_id) is NodeState.STOPPED:
            self._nodes.start([self._node_id])
        elif self._gave_way() or self._cluster.offline_directories(self._node_id):
            self._nodes.restart(self._node_id)  # it may be about to end by itself
            self.evidence.note("restarted")

    def _judge(self, struck: int) -> None:
        gave_way = self._gave_way()
        if self._blow in SPACE_BLOWS:
            told = self._told_full()
            self.evidence.bit = struck > 0 and (told > 0 or (gave_way and self._blow is Blow.FILL))
            free = "nothing" if self._blow is Blow.FILL else "less than the reserve"
            self.evidence.note(f"{free} was free; lines about it in the node's log: {told}")
        else:
            self.evidence.bit = struck > 0 and gave_way
            self.evidence.note(f"calls {'held up' if self._blow is Blow.HANG else 'failed with EIO'}: {struck}")

    def _gave_way(self) -> bool:
        """A directory was seen offline, or the node ended."""
        return any("offline" in note or "ended" in note for note in self.evidence.notes)

    def _told_full(self) -> int:
        with self._files.log.open("rb") as log:
            log.seek(self._log_from)
            return sum(1 for line in log if b"ENOSPC" in line or b"free space" in line)


def blow_at(cluster: LiveCluster, node_id: NodeId, blow: Blow) -> ActiveBlow:
    if blow in DISK_BLOWS:
        return DiskStruck(cluster, node_id, blow)
    if blow is Blow.PAUSE:
        return Paused(cluster, node_id)
    return (Stopped if blow is Blow.STOP else Killed)(cluster, node_id)
