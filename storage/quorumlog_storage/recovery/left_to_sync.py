"""What a log that recovery found whole may have in memory only: bytes and names that its first sync has to cover.

A process that was killed may have written and renamed what it did not sync. The next one finds all of it, and must not
build on it before it is on the disk. How much that is, follows from the recovery point, which is noted only for what is
synced, names included:

1. Segments that end at or before the point are on the disk.
2. The names of the log's files are on the disk where the point lies behind the start of the last segment. At its start
   they may not be: the segment may have been made after the point was noted.
3. So a log that ends at its point, inside its last segment, needs no sync. Nor can a cut of it be in memory only: a cut
   lowers the point to the start of its segment first, and the point rises again only after the cut is durable
   (quorumlog_storage/directory/checkpointed_log.py).

Only for logs from which nothing was cut. A cut has an order of its own (quorumlog_storage/recovery/recovery.py). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorumlog.ids import Offset
from quorumlog_storage.segment.segment import Segment


@dataclass(frozen=True, slots=True)
class LeftToSync:
    """segments: whose bytes may be in memory only, in order. names: also those of the log's files.

    synced_end: exclusive; what is before it is on the disk. None: all is.
    """

    segments: tuple[Segment, ...] = ()
    names: bool = False
    synced_end: Offset | None = None

    def __bool__(self) -> bool:
        return self.names or bool(self.segments)


NOTHING = LeftToSync()


def left_to_sync(segments: Sequence[Segment], end_offset: Offset, recovery_point: Offset) -> LeftToSync:
    """Of a log with these segments, all of them, and this end, exclusive; both are on or after the recovery point.

    recovery_point: 0 where nothing that was noted counts.
    """
    assert recovery_point <= end_offset, f"the log ends at {end_offset}, before its recovery point {recovery_point}"
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    behind = tuple(segment for segment, end in zip(segments, ends, strict=True) if end > recovery_point)
    names = segments[-1].base_offset >= recovery_point
    if not behind and not names:
        return NOTHING
    return LeftToSync(behind or (segments[-1],), names, max(recovery_point, segments[0].base_offset))
