"""The parts of a log that are written but not durable: bytes of segments, names in its directory, its epochs.

Rules: an epoch reaches its checkpoint before the synced end passes its first record, so epochs are written first. The
creation or removal of a segment is durable only once the directory was synced.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.atomic import write_atomically
from storage.disk import Disk
from storage.epochs import CHECKPOINT_NAME, LeaderEpochCache
from storage.segment import Segment


class Unsynced:
    """Every `sync_` method may raise DiskError; what it should have synced then still counts as not durable."""

    def __init__(self, disk: Disk, path: str, epochs: LeaderEpochCache) -> None:
        self._disk, self._path, self._epochs = disk, path, epochs
        self._segments: list[Segment] = []  # written since their last sync, in order
        self._names = False
        self._checkpoint = False

    def __bool__(self) -> bool:
        return bool(self._segments) or self._names or self._checkpoint

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

    def epochs_changed(self, changed: bool) -> None:
        """changed: the result of the change of `epochs`."""
        self._checkpoint = changed or self._checkpoint

    def begin_sync(self) -> None:
        """Start writing back what `sync_segments` will wait for. Nothing is durable after this alone."""
        for segment in self._segments:
            segment.log.begin_sync()

    def sync_segments(self) -> None:
        for segment in self._segments:
            segment.log.flush()
        self._segments.clear()

    def sync_epochs(self) -> None:
        if self._checkpoint:
            write_atomically(self._disk, f"{self._path}/{CHECKPOINT_NAME}", self._epochs.render())
            self._checkpoint = False

    def sync_names(self) -> None:
        if self._names:
            self._disk.sync_directory(self._path)
            self._names = False
