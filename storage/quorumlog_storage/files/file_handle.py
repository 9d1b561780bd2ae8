"""The descriptor of one file, which may be closed when idle, and stays the same when the file is renamed.

Every log file of a segment is opened here and nowhere else. All handles of a node share one bound on descriptors
(quorumlog_storage/files/eviction.py): a log of a thousand segments, or a node of ten thousand partitions, keeps few of
them open.

Rules:

1. The file is opened at its first use. A log of a thousand segments opens at once.
2. The first descriptor wins. Two threads that open at the same time get the same one; the other closes itself.
3. A rename opens the file first. So reads through this handle find the same bytes, also after another file has taken
   the old name.
4. A removed or abandoned file is only dropped, not closed: its descriptor closes with the last reader that holds it,
   and the handle itself holds it no longer than until `leave`. It is never opened again, because another file may have
   its name.
5. **A descriptor that wrote stays open until it was synced.** Linux reports a failed write-back to the descriptors that
   were open when it failed. A file that is opened afterwards usually gets the report too, but not if its inode left
   the memory in between, or if somebody else has seen the report. So a sync goes through the descriptor that wrote,
   and only a descriptor whose writes are all synced may be closed.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog_storage.files.disk import Disk, File, FileMissing


class FileHandle:
    """One thread creates, writes, syncs, renames and removes; any thread reads through `file`.

    A `bounded.Resident`: it leaves from any thread.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path  # the name that the file has now
        self.was_used = False
        self._disk = disk
        self._bound = disk.resources.open_files
        self._file: File | None = None
        self._opened: dict[None, File] = {}  # at most one; `setdefault` is one step for all threads
        self._written: File | None = None  # through which bytes were written that are not synced (rule 5)
        self._is_gone = False  # removed or abandoned

    @property
    def file(self) -> File:
        """For reading. Raises FileMissing if the file is gone and was not open; DiskError."""
        file = self._file
        if file is None:
            return self._keep(self._disk.open(self.path))
        self.was_used = True
        return file

    @property
    def file_to_change(self) -> File:
        """For writing and truncating: kept open until `sync`. Raises DiskError."""
        file = self._written
        if file is None:
            file = self._written = self.file
            self._file = self._opened.setdefault(None, file)  # it may have left at once, where all others are held
            self._bound.admit(self)
        return file

    def create(self) -> None:
        """Make the file, empty. Its name is not durable until the directory is synced."""
        self._keep(self._disk.open(self.path, create=True)).truncate(0)

    def begin_sync(self) -> None:
        """See `File.begin_sync`."""
        file = self._written
        if file is not None:
            file.begin_sync()

    def reserve(self, size: int) -> None:
        """See `File.reserve`. Raises DiskError where the file has to be opened for that and cannot be."""
        self.file.reserve(size)

    def sync(self) -> None:
        """Make all that was written durable. After an error the descriptor stays open for good. Raises DiskError."""
        file = self._written
        if file is None:
            file = self.file
        file.sync()
        self._written = None
        self._leave_room()

    def rename(self, path: str) -> None:
        """Durable once the directory is synced."""
        was_written, self._written = self._written, self.file_to_change  # rule 3: it must not leave meanwhile
        self._disk.rename(self.path, path)
        self.path = path
        self._written = was_written
        self._leave_room()

    def remove(self) -> None:
        """Durable once the directory is synced. Readers that hold the descriptor keep it."""
        self.abandon()
        self._disk.unlink(self.path)

    def abandon(self) -> None:
        """The name is about to be another file's. Readers that hold the descriptor keep it."""
        self._is_gone = True
        self._bound.forget(self)

    def let_go(self) -> None:
        """Its directory has failed: nothing of it is synced or read any more in this generation, so that nothing keeps
        the file system from being unmounted. From any thread."""
        self.abandon()
        self.leave()

    # --- bounded.Resident ---

    @property
    def weight(self) -> int:
        return 1

    @property
    def is_held(self) -> bool:
        return self._written is not None

    def leave(self) -> None:
        """The descriptor closes when the last reader that uses it now has ended."""
        self._opened, self._file = {}, None
        if self._is_gone:
            self._written = None  # nobody will sync it

    def _leave_room(self) -> None:
        """It is held no more: where others were held as well, it was admitted above the limit, and nothing left."""
        if self._written is None and self._bound.is_over:
            self._bound.make_room()

    def _leave_if_gone(self) -> None:
        """Another thread has abandoned it while this one opened it: only this reader keeps the descriptor."""
        if self._is_gone:
            self._bound.forget(self)
            self.leave()

    def _keep(self, opened: File) -> File:
        if self._is_gone:
            raise FileMissing(self.path, "open")  # another file may have the name by now
        file = self._file = self._opened.setdefault(None, opened)
        self._bound.admit(self)  # last: a handle that another thread let go meanwhile is known again
        self._leave_if_gone()
        return file


def open_below(disk: Disk, directory: str) -> list[FileHandle]:
    """The handles that keep a descriptor of a file in `directory` or below it."""
    held = disk.resources.open_files.residents()
    return [one for one in held if isinstance(one, FileHandle) and one.path.startswith(f"{directory}/")]


def let_go_all(handles: Sequence[FileHandle]) -> None:
    for handle in handles:
        handle.let_go()
