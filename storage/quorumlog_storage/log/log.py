"""A log: batches in segments, one after the other; the same engine for a partition and for the metadata.

Rules of the log; those of one operation stand in its own module:

- One thread changes a log, the writer of its directory. Any thread reads what was published, by taking the view.
- An append publishes the new end after its write returned. `sync` makes it durable and then moves `synced_end`.
- After an exception of any kind in the middle of a change the log refuses every change: an (offset, epoch) is never
  assigned twice.
- A new epoch reaches its checkpoint before `synced_end` passes its first record.
- Reading asks nothing of the writer: a log is read in the same way whether its replica leads or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from quorumlog.ids import Epoch, Offset
from quorumlog.records.format.batch import headers
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing
from quorumlog_storage.files.kept_errors import kept
from quorumlog_storage.log import log_append, log_truncate, swap
from quorumlog_storage.log.aborted import aborted_for, transactional
from quorumlog_storage.log.log_errors import ChangeGuard, LogUnreadable, reading
from quorumlog_storage.log.log_view import LogPart, LogView, view_of
from quorumlog_storage.log.unsynced import Unsynced
from quorumlog_storage.producers.transactions import STABLE, Unstable
from quorumlog_storage.recovery.recovery import LoadedLog, ScanProgress, load
from quorumlog_storage.rules.failure_rule import Consequence, consequence_of
from quorumlog_storage.rules.roll_rule import RollClock
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.retired import Retired, retire
from quorumlog_storage.segment.segment import Segment


class Log:
    """Open with `Log.open`. Changed by the writer of the log's directory only; any thread reads the public fields.

    Invariants: start_offset <= synced_end <= end_offset. The view has at least one segment.
    """

    def __init__(
        self, disk: Disk, path: str, config: LogConfig, loaded: LoadedLog, retired: Retired | None = None
    ) -> None:
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
        self.retired = retired  # where segments go that leave; None: they are removed at once
        self.cuts = 0  # truncations so far: a reader whose view is older may meet bytes that are gone
        self._disk = disk
        self.is_abandoned = False  # its directory has another name; only reads that are under way go on
        self._sync_requested = bool(self.unsynced)  # whatever the config says: recovery leaves nothing to chance

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        config: LogConfig,
        *,
        recovery_point: Offset = 0,
        clean: bool = False,
        log_start: Offset = 0,
        retired: Retired | None = None,
        progress: ScanProgress | None = None,
        whole: bool = False,
        defers_sync: bool = False,
    ) -> Log:
        """Open the log in directory `path`, made if it is not there; recover it unless it was closed cleanly.

        recovery_point: records before it were synced when it was noted (`recovery-point-offset-checkpoint`). If the log
        ends before it, it is ignored (quorumlog_storage/recovery/recovery.py).
        clean: the node left its clean-shutdown marker, so all files are as `close` left them.
        log_start: records before it were deleted, and segments that hold nothing else are not part of the log.
        retired: where segments go that leave the log, also those that an earlier process left; None: removed at once.
        progress: is told what the recovery still has to verify. whole: verify every byte, trust nothing.
        defers_sync: leave what an earlier process may have had in memory only to the first `sync`, which the caller
        sees to: the synced end tells what is on disk before it.
        Raises LogUnreadable, DiskError; UnknownFormat if another version wrote the log: then nothing was changed.
        `recovery` says what recovery has cut; everything else is on disk when this returns, unless `defers_sync`. What
        a read error interrupts, the next opening repeats.
        """
        with reading(path):
            loaded = load(disk, path, config, recovery_point, clean, log_start, retired, progress, whole)
            log = cls(disk, path, config, loaded, retired)
        if log.unsynced and not defers_sync:
            log.sync()
        return log

    # --- for any thread ---

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

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        view = self.view
        return sum(view.limit(number) for number in range(len(view.segments)))

    @property
    def segment_bases(self) -> tuple[Offset, ...]:
        return self.view.bases

    @property
    def change_failure(self) -> BaseException | None:
        """The first failure of a change, after which the log takes no changes."""
        return self.guard.failure

    @property
    def failure(self) -> BaseException | None:
        """Why its replica is offline: the first failure of a change, or else of a read."""
        return self.guard.failure or self.read_failure

    @property
    def is_acknowledgeable(self) -> bool:
        """Whether everything published is synced or need not be, so that this replica may acknowledge its end."""
        unsynced = self.end_offset - self.synced_end
        return unsynced <= 0 or (not self.config.durable and unsynced < self.config.flush_messages)

    def read(self, offset: Offset, max_bytes: int, *, upper_bound: Offset) -> bytes:
        """Whole batches from the one that holds `offset`, or follows it after a gap; of one segment.

        The first batch may begin before `offset`. upper_bound: exclusive; no batch with a record at or after it is
        returned; quorumlog_storage/rules/isolation.py says which one a reader has. max_bytes: at most so many bytes,
        except that one batch is always returned. Where segments are removed or cut meanwhile, what the log holds then
        is answered. Raises OffsetOutOfRange; LogUnreadable, after which the replica is offline; FileMissing if the log
        was abandoned; CorruptBatch if it was cut again and again; DiskError if the error does not concern this log
        alone.
        """
        return self.read_part(offset, max_bytes, upper_bound=upper_bound).data

    def read_part(self, offset: Offset, max_bytes: int, *, upper_bound: Offset, committed: bool = False) -> LogPart:
        """`read`, and whether there is more to read. committed: tell the aborted transactions of the batches, too."""

        def read(view: LogView) -> LogPart:
            part = view.read(offset, max_bytes, upper_bound)
            if committed and part.data and self.producers is not None and view.aborted:
                found = transactional(headers(part.data))
                part = part._replace(aborted=aborted_for(view, self.producers, found))
            return part

        return self._look(read, lambda part: bool(part.data))

    def look_up(self, look: Callable[[LogView], T]) -> T:
        """What `look` finds in the published view, on any thread; repeated where segments are removed or cut meanwhile.

        Raises what `look` raises, with the errors of the disk told as by `read`.
        """
        return self._look(look, lambda _: True)

    def _look(self, look: Callable[[LogView], T], is_answer: Callable[[T], bool]) -> T:
        """is_answer: False where another view may hold more."""
        for tries_left in reversed(range(MAX_VIEWS)):
            view, cuts = self.view, self.cuts
            try:
                found = look(view)
            except FileMissing as error:
                if self.is_abandoned:
                    raise
                if view is self.view or not tries_left:
                    raise self._unreadable(error) from error
            except CorruptBatch as error:
                if cuts == self.cuts and not self._has_lost_a_segment_of(view):
                    raise self._unreadable(error) from error
                if not tries_left:
                    raise  # the bytes of an old view are gone; the log itself is whole
            except DiskError as error:
                if consequence_of(error) is not Consequence.REPLICA_OFFLINE:
                    raise
                raise self._unreadable(error) from error
            else:
                if is_answer(found) or view is self.view or not tries_left:
                    return found
        raise AssertionError("the last try returns or raises")

    def _has_lost_a_segment_of(self, view: LogView) -> bool:
        """A segment of an older view has left the log: its file shrinks while it is freed."""
        return not set(view.segments) <= set(self.view.segments)

    def _unreadable(self, cause: Exception) -> LogUnreadable:
        self.read_failure = self.read_failure or kept(cause)
        return LogUnreadable(self.path, cause, self)

    # --- for the writer of the directory ---

    @property
    def must_sync(self) -> bool:
        """Whether the turn that wrote has to end with a sync, before which its appends may not be acknowledged.

        With `durability=replicated` that is so once `flush.messages` records are unsynced, as in Kafka.
        """
        return self.config.durable or self._sync_requested or not self.is_acknowledgeable

    def has_too_many_files(self) -> bool:
        """More files than may be open hold unsynced bytes, of this log or of others on this node.

        Idle ones are closed first.
        """
        open_files = self._disk.resources.open_files
        if open_files.is_over:
            open_files.make_room()
        return open_files.is_over

    def let_indexes_go(self) -> None:
        """Save indexes that were built again. Where too much memory is loaded, write what only it holds: it may leave.

        Raises DiskError; then nothing has changed but caches.
        """
        is_over = self._disk.resources.indexes.is_over
        for segment in self.view.segments:
            segment.save_rebuilt()
            if is_over:
                segment.flush_held_caches()

    def mend_indexes(self) -> None:
        """Make the transaction indexes again that a reader found to contradict the log. Raises DiskError."""
        if self.producers is not None and any(index.must_build for index in self.view.aborted):
            self.producers.mend_indexes(self.view.segments)

    def request_sync(self) -> None:
        """The current turn ends with a sync, whatever the config says."""
        self._sync_requested = True

    def check(
        self, batches: Sequence[StoredBatch], end_offset: Offset, last_epoch: Epoch, *, gaps: bool = False
    ) -> tuple[Offset, Epoch]:
        """(end offset, last epoch) of a log with these, after the batches. Raises UnexpectedAppend; changes nothing.

        gaps: the offsets may leave gaps, as a follower's may; a leader's are exactly the next ones.
        """
        return log_append.check_append(self.path, batches, end_offset, last_epoch, gaps=gaps)

    def append(self, batches: Sequence[StoredBatch], *, gaps: bool = False) -> Offset:
        """`check` and `append_checked`. Returns the new end. Raises UnexpectedAppend before anything is written."""
        self.guard.check_open()
        log_append.check_append(self.path, batches, self.view.end_offset, self.epochs.last_epoch, gaps=gaps)
        log_append.append_checked(self, batches)
        return self.view.end_offset

    def append_checked(self, batches: Sequence[StoredBatch]) -> Offset:
        """Write batches that `check` has accepted at this end, and publish them. Returns the new end.

        Raises LogClosed; DiskError, after which the log takes no changes.
        """
        log_append.append_checked(self, batches)
        return self.view.end_offset

    def sync(self) -> Offset:
        """Make everything published durable and move `synced_end`. Raises DiskError (the log has failed)."""
        with self.guard:
            self.guard.may_back_out = True  # each step may be repeated: it forgets its work once it is done
            end = self.end_offset
            self.unsynced.sync_epochs(end)
            self.unsynced.sync_segments()
            if self.producers is not None:
                self.producers.sync()
            self.unsynced.sync_names()
            self.synced_end = end
            self._sync_requested = False
        return end

    def begin_sync(self) -> None:
        """Start writing back what `sync` will wait for. Nothing is durable after this alone."""
        self.unsynced.begin_sync()

    def sync_unless_closed(self) -> None:
        """`sync` at the end of a turn. A log that was closed in this turn is synced already."""
        if not self.guard.is_closed:
            self.sync()

    def begin_epoch(self, epoch: Epoch) -> Offset:
        """Note that `epoch` starts at the log's end, as a new leader does before it writes anything.

        The note is durable before `synced_end` passes the first record of the epoch. Until then it need not be: an
        epoch without records is forgotten by the next start, and the next leader gets a later one (decision 43).
        Returns where the epoch started: earlier than the end if this log has records of it already.
        """
        with self.guard:
            self.epochs.assign(epoch, self.end_offset)
        return self.epochs.entries[-1].start_offset

    def truncate_to(self, offset: Offset) -> Offset:
        """Remove every batch that holds a record at or after `offset`. Returns the new end, at most `offset`. Durable.

        The caller has lowered the recovery point on disk before (quorumlog_storage/directory/checkpointed_log.py).
        Raises LogUnreadable, where nothing has changed yet; DiskError.
        """
        log_truncate.truncate_to(self, offset)
        return self.end_offset

    def truncate_fully(self, start_offset: Offset) -> None:
        """Remove everything and continue at `start_offset`, as after taking a snapshot. Durable."""
        log_truncate.truncate_fully(self, start_offset)

    def replace_segments(self, sources: Sequence[Segment], outputs: Sequence[tuple[Offset, int]], cuts: int) -> None:
        """Put compacted segments in the place of those that they were made from. Durable. See
        quorumlog_storage/log/swap.py.

        Raises Superseded, LogClosed, LogUnreadable, where nothing has changed; DiskError.
        """
        swap.replace_segments(self, sources, outputs, cuts)

    def advance_start(self, offset: Offset) -> None:
        """Records before `offset` are not needed any more; segments that hold nothing else are removed.

        offset: at most the log's end. Records after the synced end are synced first: the synced end is never below the
        start, and a recovery point that is noted there must be true.
        """
        if offset > self.synced_end:
            self.sync()
        log_truncate.advance_start(self, offset)

    def roll(self) -> None:
        """Close the last segment and begin another one, unless it is empty. Durable. Raises DiskError."""
        with self.guard:
            log_append.roll_unless_empty(self)

    def expire_producers(self, now_ms: int, max_silence_ms: int) -> None:
        """Forget producers that were silent for that long. now_ms: monotonic. Nothing on disk changes."""
        if self.producers is not None:
            self.producers.expire(now_ms, max_silence_ms)

    def abandon(self) -> None:
        """The log is closed, and its directory is about to get another name.

        A read that is under way goes on; the next one gets FileMissing. Otherwise it could read another log that has
        the old name by then. Nothing stays open, whoever still knows this log: a topic's room is free once it is gone.
        """
        assert self.guard.is_closed, f"{self.path} is abandoned while it is open"
        self.is_abandoned = True
        for segment in self.view.segments:
            segment.let_go()

    def give_up(self) -> None:
        """It was opened and is not needed any more, or its directory has failed. Nothing is written."""
        self.guard.is_closed = True
        self.abandon()

    def close(self) -> None:
        """Sync, leave caches and producers for a clean start, take no more changes. Files close with their last reader.

        Safe to call twice. After a failed change it writes nothing, after a failed read no caches: making them reads.
        """
        if not self.guard.is_closed and self.change_failure is None:
            self.sync()
            if self.read_failure is None:
                with self.guard:
                    for segment in self.view.segments:
                        segment.save_rebuilt()
                    self.active.flush_caches()
                    self.active.log.give_room_back()
                    self._save_producers()
        self.guard.is_closed = True

    def _save_producers(self) -> None:
        """The last step of a clean close."""
        if self.producers is not None:
            self.producers.note_index(self.active, self.view.segments)
            if self.producers.save(self.end_offset):  # it is there where nothing was written since the last clean close
                self.unsynced.names_changed()
            self.producers.sync()
            self.unsynced.sync_names()

    # --- for the operations on a log: appending, truncating, swapping ---

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


T = TypeVar("T")

MAX_VIEWS = 10  # that one read takes, each after another change of the log
