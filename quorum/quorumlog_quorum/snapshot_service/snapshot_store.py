"""The snapshot files of a running node: stores one that is fetched, verifies them, and knows which there are.

Everything here is called on the node's loop. Files are changed by the worker of the metadata log and read away from the
loop. on_error gets every failure of the disk; the node then stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from quorumlog.messages.buffer import Buffer
from quorumlog_quorum.disk.metadata_log import OnError
from quorumlog_quorum.snapshots import (
    CorruptSnapshot,
    PartFile,
    SnapshotHeading,
    SnapshotId,
    SnapshotReader,
    SnapshotSummary,
    StoredSnapshot,
    order,
    snapshot_path,
    verify_snapshot,
)
from quorumlog_quorum.snapshots.opening import set_aside
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing
from quorumlog_storage.rules.failure_rule import Consequence, consequence_of
from quorumlog_storage.writer.worker import Answer, Worker, WorkerClosed, WorkerFull
from quorumlog_storage.writer.writer import CallJob, Outcome

_log = logging.getLogger("quorumlog.quorum")

RETRY_MS = 5  # while a queue of the worker is full


class SnapshotStore:
    """stored: those that may be used, oldest first. damaged: how many files were found damaged, ever kept ones too."""

    def __init__(
        self,
        *,
        disk: Disk,
        worker: Worker,
        rng: Random,
        on_error: OnError,
        stored: Sequence[StoredSnapshot] = (),
        damaged: int = 0,
    ) -> None:
        self.disk, self._worker, self._rng, self._on_error = disk, worker, rng, on_error
        self.stored = tuple(stored)
        self.damaged = damaged
        self._part: PartFile | None = None  # of the snapshot that is being fetched

    @property
    def directory(self) -> str:
        return self._worker.path

    @property
    def latest(self) -> StoredSnapshot | None:
        return self.stored[-1] if self.stored else None

    def holds(self, snapshot: SnapshotId) -> bool:
        return any(one.id == snapshot for one in self.stored)

    def add(self, snapshot: StoredSnapshot) -> None:
        """It is durable under its name."""
        others = [one for one in self.stored if one.id != snapshot.id]
        self.stored = tuple(sorted([*others, snapshot], key=lambda one: order(one.id)))

    def forget(self, gone: Sequence[SnapshotId]) -> None:
        self.stored = tuple(one for one in self.stored if one.id not in gone)

    def forget_damaged(self, snapshot: SnapshotId, reason: str) -> None:
        """It could not be read. Its file stays; the next start sets it aside."""
        _log.error("damaged: %s; it is not used any more, and nothing is deleted because of it", reason)
        self.damaged += 1
        self.forget([snapshot])

    def set_aside(self, snapshot: SnapshotId, reason: str) -> None:
        """It is damaged, or its content is wrong, which only loading shows. It is kept, and never read again."""

        def rename() -> None:
            with contextlib.suppress(FileMissing):
                set_aside(self.disk, self.directory, snapshot, reason)

        self.damaged += 1
        self.forget([snapshot])
        self.submit(rename, _ignore)

    def give_up(self, snapshot: SnapshotId, error: Exception) -> bool:
        """`verify` ended with this error. Returns False if it is of the moment, and the snapshot may be good."""
        if isinstance(error, CorruptSnapshot):
            self.set_aside(snapshot, str(error))
        elif isinstance(error, DiskError) and consequence_of(error) is Consequence.REPLICA_OFFLINE:
            self.forget_damaged(snapshot, str(error))  # missing, or the disk cannot read it
        else:
            _log.warning("snapshot %s cannot be verified now: %s", snapshot, error)
            return False
        return True

    def new_part(self, snapshot: SnapshotId) -> PartFile:
        return PartFile(self.disk, self.directory, snapshot, f"{self._rng.getrandbits(64):016x}")

    # --- fetching ---

    def store_piece(self, snapshot: SnapshotId, position: int, data: Buffer, on_stored: Callable[[int], None]) -> None:
        """Pieces come in order; position 0 begins. on_stored: given the bytes so far. Raises WorkerFull."""
        begins = position == 0
        part = self.new_part(snapshot) if begins else self._part
        assert part is not None and part.snapshot == snapshot, f"a piece of {snapshot} while {part} is fetched"

        def write() -> int:
            if begins:
                part.create()
            assert part.size == position, f"{part.path} has {part.size} bytes, not {position}"
            part.append(data)
            return part.size

        self._worker.submit(CallJob(write, size_bytes=len(data)), self._value(on_stored), None)
        self._part = part

    def finish(self, snapshot: SnapshotId, on_finished: Callable[[SnapshotHeading | None], None]) -> None:
        """Verify the whole file, then give it its name. on_finished: given None if it is damaged. Raises WorkerFull."""
        part = self._part
        assert part is not None and part.snapshot == snapshot

        def verified(outcome: Outcome) -> None:
            if self._part is not part:
                return  # it was dropped meanwhile
            self._part = None
            if isinstance(outcome.error, CorruptSnapshot):
                _log.error("the snapshot that was fetched is damaged, and is fetched again: %s", outcome.error)
                self.submit(part.discard, lambda _: on_finished(None))
            elif outcome.error is not None:
                self._on_error(outcome.error)
            else:
                self.submit(part.freeze, lambda _: frozen(outcome.value))

        def frozen(summary: SnapshotSummary) -> None:
            self.add(StoredSnapshot(snapshot, summary.size, summary.heading.last_contained_timestamp_ms))
            on_finished(summary.heading)

        self._worker.read(lambda: verify_snapshot(self.disk, part.path, snapshot), self._guarded(verified))

    def drop(self, snapshot: SnapshotId) -> None:
        """The part that is fetched is not needed any more. Raises WorkerFull."""
        part = self._part
        if part is not None and part.snapshot == snapshot:
            self._worker.submit(CallJob(part.discard), self._value(_ignore), None)
            self._part = None

    # --- reading one's own ---

    def open_reader(self, snapshot: SnapshotId, callback: Callable[[SnapshotReader | None], None]) -> None:
        """callback: given a reader; None if the file cannot be opened."""

        def opened(outcome: Outcome) -> None:
            if outcome.error is not None and not isinstance(outcome.error, DiskError):
                self._on_error(outcome.error)
                return
            callback(outcome.value)

        self.read_later(lambda: SnapshotReader(self.disk, snapshot_path(self.directory, snapshot), snapshot), opened)

    def verify(self, snapshot: SnapshotId, callback: Answer) -> None:
        """Read the whole file in pieces. callback: given no error, CorruptSnapshot or DiskError."""

        def go_on(reader: SnapshotReader, outcome: Outcome) -> None:
            if outcome.error is None and outcome.value:
                self.read_later(reader.read, lambda read: go_on(reader, read))
                return
            reader.close()
            callback(outcome)

        def opened(outcome: Outcome) -> None:
            if outcome.error is not None:
                callback(outcome)
            else:
                self.read_later(outcome.value.read, lambda read: go_on(outcome.value, read))

        self.read_later(lambda: SnapshotReader(self.disk, snapshot_path(self.directory, snapshot), snapshot), opened)

    # --- the worker ---

    def submit(self, change: Callable[[], Any], on_done: Callable[[Any], None], size_bytes: int = 0) -> None:
        """A change of files; on_done is given its value. A full worker is asked again; a closed one does nothing."""
        job = CallJob(change, size_bytes=size_bytes)
        self._again_if_full(lambda: self._worker.submit(job, self._value(on_done), None))

    def read_later(self, read: Callable[[], Any], callback: Answer) -> None:
        """Like `submit`, for a read."""
        self._again_if_full(lambda: self._worker.read(read, self._guarded(callback)))

    def _again_if_full(self, ask: Callable[[], None]) -> None:
        try:
            ask()
        except WorkerFull:
            asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._again_if_full, ask)
        except WorkerClosed:
            pass  # the node stops

    def _value(self, then: Callable[[Any], None]) -> Answer:
        """An answer that passes on the job's value, or its error to on_error."""

        def answer(outcome: Outcome) -> None:
            if outcome.error is not None:
                self._on_error(outcome.error)
            else:
                then(outcome.value)

        return self._guarded(answer)

    def _guarded(self, answer: Answer) -> Answer:
        """An answer whose own exceptions go to on_error, too."""

        def call(outcome: Outcome) -> None:
            try:
                answer(outcome)
            except Exception as error:
                self._on_error(error)

        return call


def _ignore(_: object) -> None:
    pass
