"""Replace a small file so that a reader finds the old text or the new one, never a mixture and never no file.

Four steps, each needed: write a temporary file beside it, sync its bytes, rename it over the old
name, sync the directory that holds the name.
"""

from __future__ import annotations

from quorumlog_storage.files.disk import Disk, parent_of, write_fully

TEMPORARY_SUFFIX = ".tmp"


def write_atomically(disk: Disk, path: str, content: bytes) -> None:
    """Durable when it returns. Raises DiskError; then the old content is still there, perhaps beside a `.tmp`."""
    replace_file(disk, path, content)
    disk.sync_directory(parent_of(path))


def replace_file(disk: Disk, path: str, content: bytes) -> None:
    """All but the last step. Durable once the caller has synced the directory, perhaps with other new names."""
    temporary = path + TEMPORARY_SUFFIX
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)  # an interrupted attempt may have left bytes
        write_fully(file, temporary, [content], 0)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)


def remove_durably(disk: Disk, path: str) -> None:
    """Remove a file's name and make that durable. Raises FileMissing, DiskError."""
    disk.unlink(path)
    disk.sync_directory(parent_of(path))
