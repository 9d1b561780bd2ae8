"""The parts of a log that are written but not durable: bytes of segments, names in its directory, its epochs.

Rules: an epoch reaches its checkpoint before the synced end passes its first record, so epochs are written first. One
that has no records waits for them: the next start would forget it (decision 43). The creation or removal of a segment
is durable only once the directory was synced.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import Offset
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.recovery.recovery import NOTHING, LeftToSync
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME, EpochStart, LeaderEpochCache
from quorumlog_storage.segment.segment import Segment


class Unsynced:
    """Every `sync_` method may raise DiskError; what it should have synced then still counts as not durable.

    saved: the epochs as the checkpoint has them. left: what an earlier process may not have synced.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        epochs: LeaderEpochCache,
        saved: tuple[EpochStart, ...] = (),
        left: LeftToSync = NOTHING,
    ) -> None:
        self._disk, self._path, self._epochs, self._saved = disk, path, epochs, saved
        self._segments: list[Segment] = list(left.segments)  # written since their last sync, in order
        self._names = left.names

    def __bool__(self) -> bool:
        """Bytes or names are not durable yet."""
        return bool(self._segments) or self._names

    def segment_written(self, segment: Segment) -> None:
        """The segment was written, or is about to be."""
        if segment not in self._segments:
            self._segments.append(segment)

    def keep_only(self, segments: Sequence[Segment]) -> None:
        """The log now has these segments only."""
        self._segments = [segment for segment in self._segments if segment in segments]

    def names_changed(self) -> None:
        """A file was created, renamed or removed."""
        self._names = True

    def begin_sync(self) -> None:
        """Start writing back what `sync_segments` will wait for. Nothing is durable after this alone."""
        for segment in self._segments:
            segment.log.begin_sync()

    def sync_segments(self) -> None:
        for segment in self._segments:
            segment.log.flush()
        self._segments.clear()

    def sync_epochs(self, end_offset: Offset) -> None:
        """Write the checkpoint, unless it tells all that a start has to know. end_offset: of the log."""
        entries = self._epochs.entries
        if entries is not self._saved and not self._epochs.is_told_by(self._saved, end_offset):
            write_atomically(self._disk, f"{self._path}/{CHECKPOINT_NAME}", self._epochs.render())
            self._saved = entries

    def sync_names(self) -> None:
        if self._names:
            self._disk.sync_directory(self._path)
            self._names = False
