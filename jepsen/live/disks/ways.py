"""In which way this machine lets a disk be struck, found out before a run. There is always one, so no fault is skipped.

A disk fails or hangs by strace's injection, else by the test's own Disk edge inside the real process. It is full on a
small tmpfs of its own, else by the same edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from jepsen.live.disks.edge_control import EdgeFault
from jepsen.live.disks.strace import StraceFault, why_not_usable
from jepsen.live.disks.volume import LOW_BYTES, Volume, why_not_mountable
from jepsen.live.plan import Blow
from quorumlog.testing.layout import NodeFiles

SPACE_BLOWS = (Blow.FILL, Blow.LOW)
EDGE = "the test's own Disk edge inside the real process"
STRACE = "strace, which injects into system calls"
TMPFS = "a small tmpfs that is filled up"


class DiskFault(Protocol):
    """A blow at a disk that is under way."""

    def struck(self) -> int:
        """Evidence: calls that were struck until now; for a volume, 1 while it is filled."""
        ...

    def end(self) -> None:
        """The disk works again. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class Ways:
    """strace, tmpfs: usable here. why_not: reasons for what is not, for the report."""

    strace: bool
    tmpfs: bool
    why_not: tuple[str, ...] = ()

    @classmethod
    def of_this_machine(cls, folder: Path, edge_only: bool = False) -> Ways:
        """folder: for files of the trials. edge_only: use nothing but the test's own edge."""
        if edge_only:
            return cls(False, False, ("the edge was asked for",))
        of_strace, of_tmpfs = why_not_usable(folder), why_not_mountable(folder)
        return cls(not of_strace, not of_tmpfs, tuple(why for why in (of_strace, of_tmpfs) if why))

    @property
    def needs_edge(self) -> bool:
        """The nodes have to be started by the test's own launcher."""
        return not (self.strace and self.tmpfs)

    @property
    def injection(self) -> str:
        """How calls are made to fail or to hang."""
        return STRACE if self.strace else EDGE

    def name(self, blow: Blow) -> str:
        if blow in SPACE_BLOWS:
            return TMPFS if self.tmpfs else EDGE
        return self.injection

    def strike(self, blow: Blow, node: NodeFiles, volume: Volume, pid: int) -> DiskFault:
        """Raises AttachFailed."""
        if blow in SPACE_BLOWS and self.tmpfs:
            return FilledVolume(volume, 0 if blow is Blow.FILL else LOW_BYTES)
        if blow not in SPACE_BLOWS and self.strace:
            return StraceFault(blow, pid, volume.root, node.folder / "strikes.strace")
        return EdgeFault(blow, node.folder, volume.root)


class FilledVolume:
    """A volume on which no more than `leave_bytes` are free."""

    def __init__(self, volume: Volume, leave_bytes: int) -> None:
        self._volume, self._leave_bytes = volume, leave_bytes
        volume.fill(leave_bytes)

    def struck(self) -> int:
        return 1 if self._volume.free_bytes() <= self._leave_bytes else 0

    def end(self) -> None:
        self._volume.empty()
