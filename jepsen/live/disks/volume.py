"""A small file system of its own for each node's second directory, so that it can be filled up without harm.

A tmpfs where mounting is allowed, else a plain directory (and a full disk is then made by the test's own Disk edge).
The ballast that fills it lies beside the log directory, not in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

VOLUME_BYTES = 512 << 20  # holds some ten minutes of records at the default rate
LOW_BYTES = 8 << 20  # less than the nodes' reserve, which is 5 % of the volume
COMMAND_TIMEOUT_S = 10.0
_BALLAST_PIECE = bytes(1 << 20)


class MountFailed(Exception):
    """The machine does not allow it."""


@dataclass(slots=True)
class Volume:
    """root: the mount point. mounted: it is a file system of its own."""

    root: Path
    mounted: bool = False

    @property
    def log_dir(self) -> Path:
        return self.root / "log"

    @property
    def ballast(self) -> Path:
        return self.root / "ballast"

    def mount(self, size_bytes: int = VOLUME_BYTES) -> None:
        """Raises MountFailed."""
        run_mount("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "quorumlog-live", str(self.root))
        self.mounted = True

    def unmount(self, keep: bool = False) -> None:
        """keep: leave its files in a plain directory of the same name. May be called twice."""
        if not self.mounted:
            return
        kept = self.root.with_name(self.root.name + ".kept")
        if keep:
            self.ballast.unlink(missing_ok=True)
            shutil.copytree(self.root, kept)
        run_mount("umount", "--lazy", str(self.root))
        self.mounted = False
        if keep:
            self.root.rmdir()
            kept.rename(self.root)

    def free_bytes(self) -> int:
        status = os.statvfs(self.root)
        return status.f_bavail * status.f_frsize

    def fill(self, leave_bytes: int = 0) -> None:
        """Write until no more than this is free."""
        assert self.mounted, "this would fill the machine's own file system"
        with self.ballast.open("ab", buffering=0) as file:
            try:
                while self.free_bytes() > leave_bytes:
                    file.write(_BALLAST_PIECE)
            except OSError:
                pass  # full, which is what it is for

    def empty(self) -> None:
        """Remove the ballast. May be called twice."""
        self.ballast.unlink(missing_ok=True)


def why_not_mountable(folder: Path) -> str:
    """Why no volume can be mounted here; empty if one can. folder: for a mount point of the trial."""
    probe = Volume(folder / "probe.volume")
    probe.root.mkdir(exist_ok=True)
    try:
        probe.mount(1 << 20)
        probe.unmount()
    except MountFailed as error:
        return str(error)
    finally:
        probe.root.rmdir()
    return ""


def run_mount(*command: str) -> None:
    """Raises MountFailed."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=COMMAND_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MountFailed(str(error)) from error
    if done.returncode != 0:
        raise MountFailed(done.stderr.decode(errors="replace").strip() or f"{command[0]} ended with {done.returncode}")
