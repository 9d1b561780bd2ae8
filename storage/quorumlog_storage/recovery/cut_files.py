"""What recovery cuts from a log is kept: nothing is deleted because of what it finds.

A segment that is not part of the log any more is renamed. The tail of the segment where the log ends is copied, since
the segment itself goes on. Both become `<base>.log.<position>.cut` beside the log (quorumlog_storage/files/names.py).

Order: the copy is synced before it has its name, and the names are durable before the caller cuts anything. A crash
in between repeats the recovery. It finds the same bytes again, and a copy of them that is there counts.

Bounds: each cut keeps at most the bytes that the log had. They are freed with the partition, or by the operator, who
removes the `.cut` files once nobody needs them (also while the node runs).
"""

from __future__ import annotations

from quorumlog_storage.files.atomic import TEMPORARY_SUFFIX
from quorumlog_storage.files.disk import Disk, File, write_fully
from quorumlog_storage.files.names import cut_suffix
from quorumlog_storage.segment.log_file import LogFile
from quorumlog_storage.segment.segment import Segment

COPY_BYTES = 1 << 20  # read and written at once
MAX_CUTS = 1_000  # that begin at one position of one segment


class TooManyCuts(Exception):
    """A thousand recoveries have cut a segment at one position. Nothing was changed."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was cut {MAX_CUTS} times at the same position; check the disk, and remove the {path}.*.cut files "
            "that nobody needs"
        )
        self.path = path


def keep_segment(disk: Disk, segment: Segment) -> str | None:
    """Rename the log file of a segment that is not part of the log. Raises DiskError.

    Returns the new path; None for a file without a byte, which is removed.
    """
    if segment.size == 0:
        segment.remove()
        return None
    suffix = _free_suffix(disk, segment.log.path, 0)
    segment.remove_caches()
    segment.log.rename(suffix)
    segment.let_go()
    return segment.log.path


def keep_tail(disk: Disk, log: LogFile) -> str:
    """Copy what lies behind the last valid batch of a segment. Returns the copy's path. Raises DiskError.

    The bytes are durable when this returns, the name is not.
    """
    file, start, end = log.file, log.size, log.file.size()
    assert start < end, f"{log.path}: nothing lies between {start} and {end}"
    for number in range(MAX_CUTS):
        path = log.path + cut_suffix(start, number)
        if not disk.exists(path):
            _copy(disk, file, start, end, path)
            return path
        if _is_copy(disk, file, start, end, path):
            return path
    raise TooManyCuts(log.path)


def _copy(disk: Disk, source: File, start: int, end: int, path: str) -> None:
    temporary = path + TEMPORARY_SUFFIX  # an interrupted one was removed when the files were listed
    target = disk.open(temporary, create=True)
    try:
        target.truncate(0)
        for position in range(start, end, COPY_BYTES):
            data = source.pread(position, min(COPY_BYTES, end - position))
            write_fully(target, temporary, [data], position - start, read_soon=False)
        target.sync()
    finally:
        target.close()
    disk.rename(temporary, path)


def _is_copy(disk: Disk, source: File, start: int, end: int, path: str) -> bool:
    copy = disk.open(path)
    try:
        return copy.size() == end - start and all(
            source.pread(position, min(COPY_BYTES, end - position)) == copy.pread(position - start, COPY_BYTES)
            for position in range(start, end, COPY_BYTES)
        )
    finally:
        copy.close()


def _free_suffix(disk: Disk, live_path: str, position: int) -> str:
    for number in range(MAX_CUTS):
        suffix = cut_suffix(position, number)
        if not disk.exists(live_path + suffix):
            return suffix
    raise TooManyCuts(live_path)
