"""The descriptor of one file, which stays the same when the file is renamed.

Every log file of a segment is opened here and nowhere else, so that a bound on open descriptors needs one place.

Rules:

1. The file is opened at its first use. A log of a thousand segments opens at once.
2. The first descriptor wins. Two threads that open at the same time get the same one; the other closes itself.
3. A rename opens the file first. So reads through this handle find the same bytes, also after another file has taken
   the old name.
4. A removed file is only dropped, not closed: its descriptor closes with the last reader that holds it.
"""

from __future__ import annotations

from storage.disk import Disk, File, FileMissing


class FileHandle:
    """One thread creates, renames, releases and removes; any thread reads through `file`."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path  # the name that the file has now
        self._disk = disk
        self._file: File | None = None
        self._opened: dict[None, File] = {}  # at most one; `setdefault` is one step for all threads
        self._removed = False

    @property
    def file(self) -> File:
        """Raises FileMissing if the file was removed before it was ever opened; DiskError."""
        file = self._file
        return file if file is not None else self._keep(self._disk.open(self.path))

    def create(self) -> None:
        """Make the file, empty. Its name is not durable until the directory is synced."""
        self._keep(self._disk.open(self.path, create=True)).truncate(0)

    def rename(self, path: str) -> None:
        """Durable once the directory is synced."""
        assert self.file is not None  # rule 3
        self._disk.rename(self.path, path)
        self.path = path

    def remove(self) -> None:
        """Durable once the directory is synced. Readers that hold the descriptor keep it."""
        self._removed = True
        self._disk.unlink(self.path)

    def release(self) -> None:
        """Forget the descriptor: it closes with its last reader, and the next use opens the file again.

        Allowed only if all writes are synced: the kernel reports an error of the disk to the descriptor that wrote.
        """
        self._opened, self._file = {}, None

    def _keep(self, opened: File) -> File:
        if self._removed:
            raise FileMissing(self.path, "open")  # another file may have the name by now
        self._file = self._opened.setdefault(None, opened)
        return self._file
