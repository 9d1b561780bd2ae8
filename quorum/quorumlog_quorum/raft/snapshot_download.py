"""How far a follower is with the snapshot that it fetches. Changed by its own methods only."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.records.control import KRaftVersion, Voters
from quorumlog_storage.rules.fetch_rule import SnapshotId


@dataclass(slots=True)
class SnapshotDownload:
    """position: bytes received. It goes on from there after a request that failed, as long as the epoch lasts."""

    snapshot: SnapshotId
    size: int | None = None  # bytes of the whole file; the first answer fixes it
    position: int = 0
    is_busy: bool = False  # the disk writes or verifies what was received
    is_finished: bool = False  # the file is whole, verified and durable
    members: tuple[KRaftVersion | None, Voters | None] = (None, None)  # what it says about the voters

    @property
    def is_complete(self) -> bool:
        """Whether all bytes were received."""
        return self.position == self.size

    def on_piece(self, size: int, piece_bytes: int) -> None:
        """size: of the whole file."""
        assert not self.is_busy and self.size in (None, size) and self.position + piece_bytes <= size
        self.size, self.is_busy = size, True
        self.position += piece_bytes

    def on_stored(self) -> None:
        self.is_busy = False

    def on_finishing(self) -> None:
        self.is_busy = True

    def on_finished(self, version: KRaftVersion | None, voters: Voters | None) -> None:
        self.is_busy, self.is_finished, self.members = False, True, (version, voters)
