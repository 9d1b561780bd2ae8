"""What an open log is made of. `quorumlog_storage.log.log.Log` is this and the operations on it."""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog.ids import Epoch, Offset
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.log.log_errors import ChangeGuard
from quorumlog_storage.log.log_view import view_of
from quorumlog_storage.log.unsynced import Unsynced
from quorumlog_storage.producers.transactions import STABLE, Unstable
from quorumlog_storage.recovery.recovery import LoadedLog
from quorumlog_storage.rules.roll_rule import RollClock
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.retired import Retired, retire
from quorumlog_storage.segment.segment import Segment


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
        left = loaded.left
        synced_end = loaded.end_offset if left.synced_end is None else left.synced_end
        self.synced_end: Offset = synced_end  # exclusive; everything before it is on disk
        self.has_readers = True  # False: a follower's copy, which need not stay in the machine's memory
        self.roll_clock = RollClock(disk.resources.rolls)
        start_offset = loaded.segments[0].base_offset
        self.view = view_of(path, loaded.segments, start_offset, loaded.end_offset, self.unstable)
        self.unsynced = Unsynced(disk, path, loaded.epochs, loaded.saved_epochs, left)
        self.guard = ChangeGuard(path)
        self.read_failure: Exception | None = None  # the first; set by any reader
        self.retired: Retired | None = None  # where segments go that leave; None: they are removed at once
        self.cuts = 0  # truncations so far: a reader whose view is older may meet bytes that are gone
        self._disk = disk

    @property
    def disk(self) -> Disk:
        return self._disk

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
    def unstable(self) -> Unstable:
        """As the producer state is now; the view has it as it was published."""
        return STABLE if self.producers is None else self.producers.unstable

    @property
    def active(self) -> Segment:
        """The last segment, the only one that is written to."""
        return self.view.segments[-1]

    def publish(self, segments: tuple[Segment, ...], end_offset: Offset) -> None:
        """Show readers another set of segments, or another end."""
        start_offset = min(self.start_offset, end_offset)  # the cut batch may hold the start
        self.view = view_of(self.path, segments, start_offset, end_offset, self.unstable)

    def retire(self, segments: Iterable[Segment]) -> None:
        """See `quorumlog_storage.segment.retired.retire`."""
        retire(segments, self.retired, self.config.delete_delay_ms, self.unsynced.names_changed)

    def new_segment(self, base_offset: Offset) -> Segment:
        """Made on disk, but not durable and not published yet."""
        segment = Segment(self._disk, self.path, base_offset, self.config.index_interval_bytes)
        segment.create()
        if self.config.preallocate:
            segment.log.reserve_room(self.config.segment_bytes)
        self.roll_clock.begin()
        self.unsynced.names_changed()
        return segment
