"""The ways to strike one log directory of a running node, and the operator's part that makes it usable again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from jepsen.live.cluster.nodes import LiveCluster
from jepsen.live.disks.edge_control import EdgeFault
from jepsen.live.disks.strace import StraceFault
from jepsen.live.disks.volume import MountFailed
from jepsen.live.plan import Step
from jepsen.live.scenarios.volumes import BoundVolume, Ext4Volume
from quorumlog.ids import NodeId

CLI_TIMEOUT_S = 120.0


class DirectoryFault(Protocol):
    """Struck from construction on. replaced: what the directory held is gone, so it comes back as a new disk."""

    way: str
    replaced: bool

    def struck(self) -> str:
        """Evidence that it is in force; empty if it is not."""
        ...

    def mend(self) -> str:
        """Make the directory usable again. Returns what the operator had to do, if it was unusual."""
        ...


class CallsFail:
    """Calls that change its files return an error."""

    replaced = False

    def __init__(self, step: Step, cluster: LiveCluster, node_id: NodeId, pid: int) -> None:
        """Raises AttachFailed."""
        node, volume = cluster.nodes.layout.node(node_id), cluster.volumes[node_id]
        self.way = cluster.ways.injection
        self._fault: StraceFault | EdgeFault
        if cluster.ways.strace:
            self._fault = StraceFault(step, pid, volume.root, node.folder / "strikes.strace")
        else:
            self._fault = EdgeFault(step, node.folder, volume.root)
        self._error = step.value.rpartition(" ")[2]

    def struck(self) -> str:
        count = self._fault.struck()
        return f"{count} calls failed with {self._error}" if count else ""

    def mend(self) -> str:
        self._fault.end()
        return ""


class ReadOnly:
    """The file system gave itself up, as it does when its disk fails: every change is refused with EROFS."""

    way, replaced = "ext4, remount,abort", False

    def __init__(self, volume: Ext4Volume, pid: int) -> None:
        self._volume, self._pid = volume, pid
        volume.abort()

    def struck(self) -> str:
        try:
            (self._volume.root / "trial").touch()
        except OSError as error:
            return f"a trial: {error.strerror}"
        return ""

    def mend(self) -> str:
        """Only a file system that nobody uses any more can be mounted anew."""
        try:
            self._volume.release()
        except MountFailed:
            held = open_files(self._pid, self._volume.root)
            self._volume.take_away()
            self._volume.mount()
            return f"the node holds {len(held)} files open, so it cannot be unmounted: {', '.join(held[:8])}"
        self._volume.mount()
        return ""


class Unmounted:
    way, replaced = "umount --lazy", False

    def __init__(self, volume: Ext4Volume | BoundVolume) -> None:
        self._volume = volume
        volume.take_away()

    def struck(self) -> str:
        return "" if self._volume.root.is_mount() else "its mount point is empty"

    def mend(self) -> str:
        self._volume.mount()
        return ""


class NoRights:
    """Its node is not allowed to ignore modes (catalogue.py)."""

    way, replaced = "chmod 000, by a node without the rights of root", False

    def __init__(self, path: Path) -> None:
        self._path, self._mode = path, path.stat().st_mode
        path.chmod(0)

    def struck(self) -> str:
        return "its mode is 000" if self._path.stat().st_mode & 0o777 == 0 else ""

    def mend(self) -> str:
        self._path.chmod(self._mode)
        return ""


class Removed:
    way, replaced = "rm -rf", True

    def __init__(self, path: Path) -> None:
        self._path = path
        shutil.rmtree(path, ignore_errors=True)  # the node may make a file meanwhile

    def struck(self) -> str:
        left = [path.name for path in self._path.iterdir()] if self._path.exists() else []
        return "" if "meta.properties" in left else f"left of it: {', '.join(sorted(left)) or 'nothing'}"

    def mend(self) -> str:
        shutil.rmtree(self._path, ignore_errors=True)
        return ""


def open_files(pid: int, folder: Path) -> list[str]:
    """Names below `folder` that the process holds open, in order."""
    found = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found.append(str(descriptor.readlink()))
    return sorted(name.removeprefix(f"{folder}/") for name in found if name.startswith(f"{folder}/"))


def strike_directory(step: Step, cluster: LiveCluster, node_id: NodeId, pid: int) -> DirectoryFault:
    """Raises AttachFailed, MountFailed."""
    volume = cluster.volumes[node_id]
    match step:
        case Step.READ_ONLY if isinstance(volume, Ext4Volume):
            return ReadOnly(volume, pid)
        case Step.UNMOUNTED:
            assert isinstance(volume, Ext4Volume | BoundVolume), "the scenario is skipped otherwise"
            return Unmounted(volume)
        case Step.CHMOD:
            return NoRights(volume.log_dir)
        case Step.REMOVED:
            return Removed(volume.log_dir)
        case _:
            return CallsFail(step, cluster, node_id, pid)


def run_quorumlog(*words: str) -> subprocess.CompletedProcess[str]:
    """The operator's command."""
    command: Sequence[str] = [sys.executable, "-P", "-m", "quorumlog_cli.main", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=CLI_TIMEOUT_S)
