"""A file system of its own for a node's second directory that can be unmounted under the node and become read-only.

An ext4 file system in a file, where loop devices may be mounted: `abort` makes it read-only, as a failed disk does.
Else a tmpfs that is mounted beside and bound to its place, so that what it holds outlives an unmount.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from jepsen.live.disks.volume import MountFailed, Volume, run_mount

IMAGE_BYTES = 192 << 20
TMPFS_BYTES = 192 << 20
RELEASE_S = 10.0  # for a node to close the files of a directory that has failed
_RETRY_S = 0.1


class Ext4Volume(Volume):
    """The image lies beside the mount point."""

    can_abort = True

    @property
    def image(self) -> Path:
        return self.root.with_name(f"{self.root.name}.img")

    def mount(self, size_bytes: int = IMAGE_BYTES) -> None:
        """Raises MountFailed."""
        if not self.image.exists():
            with self.image.open("wb") as file:
                file.truncate(size_bytes)
            run_mount("mkfs.ext4", "-q", "-F", str(self.image))
        run_mount("mount", "-o", "loop", str(self.image), str(self.root))
        self.mounted = True

    def abort(self) -> None:
        """Read-only from now on, also for files that are open; ends with `mount` after `release`."""
        run_mount("mount", "-o", "remount,abort", str(self.root))

    def release(self) -> None:
        """Unmount, once nobody has a file open there. Raises MountFailed."""
        deadline = time.monotonic() + RELEASE_S
        while True:
            try:
                run_mount("umount", str(self.root))
            except MountFailed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)
            else:
                self.mounted = False
                return

    def take_away(self) -> None:
        """A lazy unmount: open files still work, the path is empty. Ends with `mount`."""
        run_mount("umount", "--lazy", str(self.root))
        self.mounted = False


class BoundVolume(Volume):
    """For mount namespaces of ordinary users, which have no loop devices."""

    can_abort = False

    @property
    def anchor(self) -> Path:
        return self.root.with_name(f"{self.root.name}.anchor")

    def mount(self, size_bytes: int = TMPFS_BYTES) -> None:
        """Raises MountFailed."""
        if not self.anchor.exists():
            self.anchor.mkdir()
            run_mount("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "quorumlog-live", str(self.anchor))
        run_mount("mount", "--bind", str(self.anchor), str(self.root))
        self.mounted = True

    def take_away(self) -> None:
        """A lazy unmount: open files still work, the path is empty. Ends with `mount`."""
        run_mount("umount", "--lazy", str(self.root))
        self.mounted = False

    def unmount(self, keep: bool = False) -> None:
        super().unmount(keep)
        if self.anchor.exists():
            with contextlib.suppress(MountFailed):
                run_mount("umount", "--lazy", str(self.anchor))


def kind_of_volume(folder: Path) -> tuple[type[Ext4Volume] | type[BoundVolume] | None, str]:
    """(the kind that can be mounted here, why not a better one). folder: for a trial."""
    reasons = []
    for kind in (Ext4Volume, BoundVolume):
        volume = kind(folder / f"probe-{kind.__name__}")
        volume.root.mkdir()
        try:
            volume.mount(8 << 20)
        except MountFailed as error:
            reasons.append(f"{kind.__name__}: {error}")
        else:
            return kind, "; ".join(reasons)
        finally:
            volume.unmount()
    return None, "; ".join(reasons)
