"""A log: batches in segments, one after the other; the same engine for a partition and for the metadata.

Rules (DESIGN §6, RELIABILITY 6.1):

- One thread changes a log (its directory's writer); any thread reads what was published, by taking the view.
- An append publishes the new end after its write returned. `sync` makes it durable and then moves `synced_end`.
- After a failed or short write or sync the log refuses every change: an (offset, epoch) is never assigned twice.
- A new epoch reaches its checkpoint before `synced_end` passes its first record.
- A truncation is durable when it returns, so that an old record never comes back behind a new one.
- What is remembered of producers is what the published batches say; an append is noted before it is published.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import Epoch, Offset
from storage.batch import StoredBatch
from storage.disk import Disk, DiskError
from storage.log_config import LogConfig
from storage.log_loader import LoadedLog, load
from storage.log_view import FileRange, LogSlice, LogView, view_of
from storage.segment import Segment
from storage.unsynced import Unsynced


class UnexpectedAppend(Exception):
    """Batches that cannot follow the log's end. Nothing was written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; fetch again from the log's end")
        self.path, self.reason = path, reason


class LogClosed(Exception):
    """A change of a log that was closed or has failed. `cause` is the first failure, if there was one."""

    def __init__(self, path: str, cause: DiskError | None) -> None:
        why = f"failed earlier: {cause}" if cause else "is closed"
        super().__init__(f"{path} {why}; it takes no more changes until it is opened again")
        self.path, self.cause = path, cause


class _Changing:
    """Around every change of a log: refused after a failure, and the first failure is remembered."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.failure: DiskError | None = None
        self.closed = False

    def __enter__(self) -> None:
        if self.closed or self.failure is not None:
            raise LogClosed(self.path, self.failure)

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, DiskError):
            self.failure = error


class Log:
    """Open with `Log.open`. Invariants: start_offset <= synced_end <= end_offset; the view has at least one segment."""

    def __init__(self, disk: Disk, path: str, config: LogConfig, loaded: LoadedLog) -> None:
        self.path = path
        self.config = config
        self.epochs = loaded.epochs
        self.recovery = loaded.recovery  # what opening found
        self.producers = loaded.producers  # None where none are remembered
        self.synced_end: Offset = loaded.end_offset  # exclusive; everything before it is on disk
        self.has_readers = True  # False: a follower's copy, which need not stay in the machine's memory
        self._disk = disk
        self._view = view_of(path, loaded.segments, loaded.segments[0].base_offset, loaded.end_offset)
        self._unsynced = Unsynced(disk, path, loaded.epochs)
        self._sync_asked = False
        self._changing = _Changing(path)

    @classmethod
    def open(cls, disk: Disk, path: str, config: LogConfig, *, recovery_point: Offset = 0, clean: bool = False) -> Log:
        """Open the log in directory `path`, made if it is not there; recover it unless it was closed cleanly.

        recovery_point: records before it were synced when it was noted (`recovery-point-offset-checkpoint`).
        clean: the node left its clean-shutdown marker, so all files are as `close` left them.
        Raises DiskError. What recovery threw away is in `recovery`; everything else is on disk when this returns.
        """
        return cls(disk, path, config, load(disk, path, config, recovery_point, clean))

    # --- for any thread ---

    @property
    def start_offset(self) -> Offset:
        return self._view.start_offset

    @property
    def end_offset(self) -> Offset:
        """Exclusive: the offset that the next record gets. Published after its write returned, not synced yet."""
        return self._view.end_offset

    @property
    def last_epoch(self) -> Epoch:
        return self.epochs.last_epoch

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        view = self._view
        return sum(view.limit(number) for number in range(len(view.segments)))

    @property
    def segment_bases(self) -> tuple[Offset, ...]:
        return self._view.bases

    @property
    def failure(self) -> DiskError | None:
        """The first failed write or sync, after which the log takes no changes."""
        return self._changing.failure

    @property
    def is_acknowledgeable(self) -> bool:
        """True where everything published is synced, or need not be: then its end may be told as this replica's."""
        unsynced = self.end_offset - self.synced_end
        return unsynced <= 0 or (not self.config.durable and unsynced < self.config.flush_messages)

    def locate(self, offset: Offset, max_bytes: int, *, upper_bound: Offset, min_one_batch: bool = True) -> FileRange:
        """`read` without the bytes: where they are. For who sends them straight from the file."""
        return self._view.locate(offset, max_bytes, upper_bound, min_one_batch)

    def read(self, offset: Offset, max_bytes: int, *, upper_bound: Offset, min_one_batch: bool = True) -> LogSlice:
        """Whole batches from the one that holds `offset`, of one segment.

        upper_bound: exclusive; no batch with a record at or after it is returned. max_bytes: at most so many bytes,
        except that min_one_batch lets the first batch be larger. Raises OffsetOutOfRange, CorruptBatch, DiskError.
        """
        found = self.locate(offset, max_bytes, upper_bound=upper_bound, min_one_batch=min_one_batch)
        data = found.segment.read(found.position, found.length) if found.length else b""
        return LogSlice(data, found.position, found.segment.base_offset)

    # --- for the directory's writer ---

    @property
    def is_dirty(self) -> bool:
        """True if `sync` has something to do."""
        return bool(self._unsynced)

    @property
    def must_sync(self) -> bool:
        """True if the turn that made it dirty ends with a sync: what was appended may not be acknowledged before.

        With `durability=replicated` that is so once `flush.messages` records are not synced, as Kafka has it.
        """
        return self.config.durable or self._sync_asked or not self.is_acknowledgeable

    def ask_sync(self) -> None:
        """Of the turn's end, whatever the config says."""
        self._sync_asked = True

    def check(self, batches: Sequence[StoredBatch], end_offset: Offset, last_epoch: Epoch) -> tuple[Offset, Epoch]:
        """(end offset, last epoch) after appending to a log that ends so. Raises UnexpectedAppend; changes nothing."""
        for batch in batches:
            if batch.base_offset != end_offset or batch.last_offset < batch.base_offset:
                raise UnexpectedAppend(
                    self.path, f"offsets {batch.base_offset} to {batch.last_offset} where {end_offset} is next"
                )
            if batch.leader_epoch < max(0, last_epoch):
                raise UnexpectedAppend(self.path, f"epoch {batch.leader_epoch} after epoch {last_epoch}")
            end_offset, last_epoch = batch.next_offset, batch.leader_epoch
        return end_offset, last_epoch

    def append(self, batches: Sequence[StoredBatch]) -> Offset:
        """Write stamped batches at the end, one vectored write per segment, and publish them. Returns the new end.

        Leader and follower append alike; they differ in who assigned the offsets. Raises UnexpectedAppend before
        anything is written; DiskError, after which the log takes no changes; LogClosed.
        """
        with self._changing:
            self.check(batches, self.end_offset, self.last_epoch)
            run: list[StoredBatch] = []
            pending = 0
            for batch in batches:
                if not self._active.fits(pending, batch, self.config.segment_bytes):
                    self._write(run)
                    self._roll(batch.base_offset)
                    run, pending = [], 0
                run.append(batch)
                pending += batch.size
            self._write(run)
        return self.end_offset

    def sync(self) -> Offset:
        """Make everything published durable; `synced_end` then says so. Raises DiskError (the log has failed)."""
        with self._changing:
            end = self.end_offset
            self._unsynced.sync_epochs()
            self._unsynced.sync_segments()
            if self.producers is not None:
                self.producers.sync()
            self._unsynced.sync_names()
            self.synced_end = end
            self._sync_asked = False
        return end

    def truncate_to(self, offset: Offset) -> Offset:
        """Remove every batch that holds a record at or after `offset`. Returns the new end, at most `offset`. Durable.

        The caller has lowered the recovery point on disk before (storage/checkpoint.py).
        """
        if offset >= self.end_offset:
            self._forget_epochs_from(offset)
            return self.end_offset
        assert offset >= self.start_offset, f"truncate to {offset}, before the start {self.start_offset}"
        with self._changing:
            view = self._view
            number = view.number_for(offset)
            last = view.segments[number]
            position = last.find(offset, view.limit(number))
            end = last.next_offset(position) if position else last.base_offset
            self._shorten(view.segments[: number + 1], position, end)
        return end

    def begin_epoch(self, epoch: Epoch) -> Offset:
        """Note that `epoch` writes from the log's end on, durably, as a new leader does before it writes anything.

        Returns where the epoch started: earlier than the end if this log has records of it already.
        """
        with self._changing:
            self._unsynced.epochs_changed(self.epochs.assign(epoch, self.end_offset))
            self._unsynced.sync_epochs()
        return self.epochs.entries[-1].start_offset

    def truncate_fully(self, start_offset: Offset) -> None:
        """Remove everything and go on at `start_offset`, as after taking a snapshot. Durable.

        The new segment's name is on disk before the old one goes: a log is never without a segment.
        """
        with self._changing:
            old = self._view.segments[0]
            if self.producers is not None:
                self.producers.clear()
            self._shorten((old,), 0, old.base_offset)
            if start_offset == old.base_offset:
                self._publish((old,), start_offset)
                return
            fresh = self._new_segment(start_offset)
            self._unsynced.sync_names()
            self._view = view_of(self.path, (fresh,), start_offset, start_offset)
            self.synced_end = start_offset
            old.remove()
            self._unsynced.named()
            self._unsynced.sync_names()

    def advance_start(self, offset: Offset) -> None:
        """Records before `offset` are not needed any more; segments that hold nothing else are removed.

        A start inside a segment lives in memory only: who wants it kept notes it before (storage/log_starts.py).
        """
        view = self._view
        assert offset <= view.end_offset, f"start {offset} after the end {view.end_offset}"
        if offset <= view.start_offset:
            return
        with self._changing:
            number = view.number_for(offset)
            kept = view.segments[number:]
            self._view = view._replace(segments=kept, bases=view.bases[number:], start_offset=offset)
            self.synced_end = max(self.synced_end, offset)
            self._unsynced.keep(kept)
            self._unsynced.epochs_changed(self.epochs.truncate_from_start(offset))
            for segment in view.segments[:number]:
                segment.remove()
                self._unsynced.named()
            if self.producers is not None:
                self.producers.start_at(kept[0].base_offset)

    def expire_producers(self, now_ms: int, max_silence_ms: int) -> None:
        """Forget producers that were silent for so long. now_ms: monotonic. Nothing on disk changes."""
        if self.producers is not None:
            self.producers.expire(now_ms, max_silence_ms)

    def close(self) -> None:
        """Sync, leave index and producers for a clean start, take no more changes. Files close with their last reader.

        Safe to call twice, and after a failure, when it only lets go.
        """
        if not self._changing.closed and self.failure is None:
            self.sync()
            with self._changing:
                self._active.write_index()
                self._save_producers(self.end_offset)
        self._changing.closed = True

    def begin_sync(self) -> None:
        """Let the disk start with what `sync` will ask for. Nothing is durable by that."""
        self._unsynced.begin_sync()

    def sync_unless_closed(self) -> None:
        """`sync` for the end of a turn: a log that was closed in that turn was synced by closing."""
        if not self._changing.closed:
            self.sync()

    # --- details ---

    @property
    def _active(self) -> Segment:
        return self._view.segments[-1]

    def _publish(self, segments: tuple[Segment, ...], end_offset: Offset) -> None:
        start_offset = min(self.start_offset, end_offset)  # a cut takes the whole batch that the start lies in
        self._view = view_of(self.path, segments, start_offset, end_offset)

    def _write(self, run: list[StoredBatch]) -> None:
        """Batches that fit the last segment: one write, then the index and the epochs, then readers may see them."""
        if not run:
            return
        active = self._active
        self._unsynced.wrote(active)
        parts = [part for batch in run for part in batch.parts]
        position = active.append(parts, read_soon=self.has_readers or not self.config.durable)
        for batch in run:
            active.note(position, batch.last_offset)
            position += batch.size
            if self.producers is not None:
                self.producers.states.note(batch)
            if batch.leader_epoch != self.last_epoch:
                self._unsynced.epochs_changed(self.epochs.assign(batch.leader_epoch, batch.base_offset))
        view = self._view
        self._view = LogView(view.path, view.segments, view.bases, active.size, view.start_offset, run[-1].next_offset)

    def _roll(self, base_offset: Offset) -> None:
        self._active.write_index()
        segment = self._new_segment(base_offset)
        if self.producers is not None:
            self.producers.save(base_offset)
        self._publish((*self._view.segments, segment), base_offset)

    def _new_segment(self, base_offset: Offset) -> Segment:
        segment = Segment(self._disk, self.path, base_offset, self.config.index_interval_bytes)
        segment.create()
        self._unsynced.named()
        return segment

    def _shorten(self, kept: tuple[Segment, ...], position: int, end_offset: Offset) -> None:
        """Cut the last of `kept` at `position`, remove what follows it. Readers first, then names, then bytes.

        Later segments go last one first, and durably before anything new is written: after a crash the log is a
        prefix of what it was. The index goes too, lest an old one describe new bytes.
        """
        removed = self._view.segments[len(kept) :]
        last = kept[-1]
        self.synced_end = min(self.synced_end, end_offset)
        self._unsynced.keep(kept)
        last.forget(position)
        self._publish(kept, end_offset)
        for segment in reversed(removed):
            segment.remove()
        last.remove_index()
        if self.producers is not None:
            self.producers.cut(end_offset)
        self._unsynced.named()
        self._unsynced.sync_names()
        last.truncate()
        last.sync()
        if self.producers is not None:
            self.producers.reload(kept, end_offset)
        self._unsynced.epochs_changed(self.epochs.truncate_from_end(end_offset))
        self._unsynced.sync_epochs()

    def _save_producers(self, end_offset: Offset) -> None:
        """As the last thing before a clean start."""
        if self.producers is not None:
            self.producers.save(end_offset)
            self.producers.sync()
            self._unsynced.named()
            self._unsynced.sync_names()

    def _forget_epochs_from(self, offset: Offset) -> None:
        """An epoch that began where the log ends has no records; a follower that truncates there must forget it."""
        with self._changing:
            self._unsynced.epochs_changed(self.epochs.truncate_from_end(offset))
            self._unsynced.sync_epochs()
