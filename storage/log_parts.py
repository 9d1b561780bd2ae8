"""What an open log is made of. `storage.log.Log` is this and the operations on it."""

from __future__ import annotations

from quorumlog.ids import Epoch, Offset
from storage.disk import Disk
from storage.log_config import LogConfig
from storage.log_errors import ChangeGuard
from storage.log_view import view_of
from storage.recovery import LoadedLog
from storage.segment import Segment
from storage.unsynced import Unsynced


class LogParts:
    """Changed by the writer of the log's directory only; any thread reads the public fields.

    Invariants: start_offset <= synced_end <= end_offset. The view has at least one segment.
    """

    def __init__(self, disk: Disk, path: str, config: LogConfig, loaded: LoadedLog) -> None:
        self.path = path
        self.config = config
        self.epochs = loaded.epochs
        self.recovery = loaded.recovery  # what opening found
        self.producers = loaded.producers  # None where none are remembered
        self.synced_end: Offset = loaded.end_offset  # exclusive; everything before it is on disk
        self.has_readers = True  # False: a follower's copy, which need not stay in the machine's memory
        self.view = view_of(path, loaded.segments, loaded.segments[0].base_offset, loaded.end_offset)
        self.unsynced = Unsynced(disk, path, loaded.epochs)
        self.guard = ChangeGuard(path)
        self.read_failure: Exception | None = None  # the first; set by any reader
        self.cuts = 0  # truncations so far: a reader whose view is older may meet bytes that are gone
        self._disk = disk

    @property
    def start_offset(self) -> Offset:
        return self.view.start_offset

    @property
    def end_offset(self) -> Offset:
        """Exclusive: the offset that the next record gets. Published after its write returned, not synced yet."""
        return self.view.end_offset

    @property
    def last_epoch(self) -> Epoch:
        return self.epochs.last_epoch

    @property
    def active(self) -> Segment:
        """The last segment, the only one that is written to."""
        return self.view.segments[-1]

    def publish(self, segments: tuple[Segment, ...], end_offset: Offset) -> None:
        """Show readers another set of segments, or another end."""
        start_offset = min(self.start_offset, end_offset)  # the cut batch may hold the start
        self.view = view_of(self.path, segments, start_offset, end_offset)

    def new_segment(self, base_offset: Offset) -> Segment:
        """Made on disk, but not durable and not published yet."""
        segment = Segment(self._disk, self.path, base_offset, self.config.index_interval_bytes)
        segment.create()
        self.unsynced.names_changed()
        return segment
