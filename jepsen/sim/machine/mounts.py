"""File systems that were unmounted under a running process, as `umount -l` does it.

What was open stays open and is written to the disk; whoever names a path sees the mount point: an empty directory, or
nothing. The files are on the disk all the time, so observers still see them.
"""

from __future__ import annotations

from jepsen.sim.machine.page_cache import DirectoryNode


class Mounts:
    """Of one machine. Paths of mount points do not lie in one another."""

    def __init__(self) -> None:
        self._points: dict[str, DirectoryNode | None] = {}  # not mounted; None: not even a directory

    def __bool__(self) -> bool:
        """Whether anything is not mounted."""
        return bool(self._points)

    def unmount(self, path: str, *, leaves_a_directory: bool) -> None:
        self._points[path] = DirectoryNode() if leaves_a_directory else None

    def mount(self, path: str) -> None:
        """What was made at the mount point meanwhile is hidden, and gone."""
        self._points.pop(path, None)

    def seen_at(self, path: str) -> tuple[DirectoryNode | None, str] | None:
        """(directory, rest): where a path is looked up that lies at a mount point; None: it lies at none of them."""
        for point, seen in self._points.items():
            if path == point or path.startswith(point + "/"):
                return seen, path[len(point) :]
        return None
