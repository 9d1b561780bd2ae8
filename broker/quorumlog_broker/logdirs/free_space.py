"""The free-space reserve of a log directory: below it producers are refused, everything else goes on.

A full disk takes its directory offline, and the metadata log may lie beside the records. So producers stop first, while
there is room for what followers copy, for metadata, and for the deletion of records that frees space again
(decision 0019).

The reserve is `log.dir.free.space.reserve.bytes`; not set, 1 GiB or 5 % of the file system, whichever is less.
Producers may go on once there is a quarter more than that, so that they do not come and go with each segment.
"""

from __future__ import annotations

RESUME_PART = 4  # a quarter of the reserve more than the reserve


class FreeSpace:
    """Of one log directory. Pure.

    is_short: producers are refused. ran_out: a write found no room, and the directory went offline by it: a follower
    copies on below the reserve, and another program may fill the disk at once. left_bytes, reserve_bytes: free space
    and reserve, as they were measured last. full_part: of the file system, 0 to 1. total_bytes: of the file system; 0:
    not measured yet.
    """

    def __init__(self) -> None:
        self.is_short = self.ran_out = False
        self.left_bytes = self.reserve_bytes = self.total_bytes = 0
        self.full_part = 0.0

    def measured(self, free_bytes: int, reserve: int) -> bool:
        """True if that changes whether producers are refused. A look that began before a write found no room, and
        ended after it, changes nothing."""
        if self.ran_out:
            return False
        self.left_bytes, self.reserve_bytes = free_bytes, reserve
        was_short = self.is_short
        self.is_short = free_bytes < self.resume_bytes if was_short else free_bytes < reserve
        return self.is_short != was_short

    def found_no_room(self) -> None:
        """By a write that failed. This holds until the directory is back online, with a new FreeSpace."""
        self.is_short = self.ran_out = True

    @property
    def resume_bytes(self) -> int:
        """With so much free space producers may go on."""
        return self.reserve_bytes + self.reserve_bytes // RESUME_PART

    def describe(self, path: str) -> str:
        """What is wrong and what to do next, while `is_short`. path: of the directory."""
        if self.ran_out:
            return (
                f"log directory {path} is full: a write found no room, and the directory is offline by it; free space "
                "on its file system, then bring it back with `quorumlog log-dirs online`"
            )
        return (
            f"log directory {path} has {self.left_bytes:,} bytes of free space, less than its reserve of "
            f"{self.reserve_bytes:,}; producers are refused until there are {self.resume_bytes:,}: delete topics or "
            "records, shorten their retention, or enlarge the file system"
        )
