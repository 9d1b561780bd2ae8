"""What a segment is made of: its log file, and caches that are made from the log file.

A cache is an index: of offsets, of timestamps, or of aborted transactions. A new one is a class that keeps
`SegmentCache` and an entry in `Segment.caches`.

A cache is only a hint. It is written when its segment is closed for writing, it is not synced, and it may be missing,
torn or stale: then it is built again from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quorumlog.ids import Offset


class IndexedBatch(Protocol):
    """What caches need of a batch: of one that is stored now (`StoredBatch`), or the header of one that is read back.

    Both have the batch's producer and attributes, too; a cache that needs them adds them here.
    """

    @property
    def size(self) -> int: ...  # bytes, header included
    @property
    def last_offset(self) -> Offset: ...  # inclusive
    @property
    def max_timestamp(self) -> int: ...  # ms since 1970; -1 where no record has a time
    @property
    def producer_id(self) -> int: ...
    @property
    def attributes(self) -> int: ...


class SegmentFile(Protocol):
    """One file of a segment. One thread changes it. Every method may raise DiskError."""

    @property
    def path(self) -> str:
        """The name that the file has now."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the file's content."""
        ...

    def create(self) -> None:
        """Make the file, empty, for a segment without batches."""
        ...

    def truncate_to(self, position: int) -> None:
        """Forget batches that begin at or after `position`, in bytes of the log file. The file is not changed yet."""
        ...

    def flush(self) -> None:
        """Put on disk what memory holds: a log file durably, a cache without a sync."""
        ...

    def rename(self, suffix: str) -> None:
        """Append `suffix` to the file's first name; "" gives that name back. A cache without a file does nothing."""
        ...

    def remove(self) -> None:
        """Remove the file. A cache without a file does nothing."""
        ...

    def abandon(self) -> None:
        """Do not open the file any more: its directory is about to get another name."""
        ...


class SegmentCache(SegmentFile, Protocol):
    """A file that can be built again from the log. Loaded, or else built, at its first use."""

    @property
    def is_held(self) -> bool:
        """The memory holds what the file lacks."""
        ...

    def note(self, batches: Sequence[IndexedBatch], position: int) -> None:
        """`batches` are in the log now, one after the other from `position` on."""
        ...


def suffixed(live_path: str, suffix: str) -> str:
    """The name of a segment's file under a suffix such as `.deleted`, `.cleaned`, `.swap`; "" for a live one."""
    assert suffix == "" or (suffix.startswith(".") and "/" not in suffix), suffix
    return live_path + suffix
