"""Gives a snapshot to the listeners: pieces of the file, read away from the loop, a bounded step in each turn.

Every piece is verified before a listener sees it, and every load ends with `finish` or is dropped: a listener changes
nothing before that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from quorumlog.slices import Sliced
from quorumlog_quorum.metadata.listener import RaftListener
from quorumlog_quorum.metadata.snapshot_records import ImageLoad
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshots import SnapshotId, SnapshotReader
from quorumlog_storage.writer.writer import Outcome


class SnapshotUnreadable(Exception):
    """The file of a snapshot is gone."""

    def __init__(self, snapshot: SnapshotId) -> None:
        super().__init__(f"snapshot {snapshot} cannot be opened; its file is gone")


class SnapshotLoading:
    """One snapshot. Exactly one of on_done and on_failed is called, unless it is stopped."""

    def __init__(
        self,
        store: SnapshotStore,
        snapshot: SnapshotId,
        listeners: Sequence[RaftListener],
        on_done: Callable[[], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """on_failed: given CorruptSnapshot, SnapshotUnreadable, DiskError, or what a listener raised."""
        self._store, self.snapshot, self._listeners = store, snapshot, listeners
        self._on_done, self._on_failed = on_done, on_failed
        self._loads: list[ImageLoad] | None = None  # None: not begun
        self._stopped = False

    def start(self) -> None:
        self._store.open_reader(self.snapshot, self._opened)

    def stop(self) -> None:
        """Drop it. Nothing is called any more."""
        self._stopped = True

    def _opened(self, reader: SnapshotReader | None) -> None:
        if reader is None:
            self._fail(SnapshotUnreadable(self.snapshot))
        else:
            self._read_next(reader)

    def _read_next(self, reader: SnapshotReader) -> None:
        if self._stopped:
            reader.close()
        else:
            self._store.read_later(reader.read, lambda outcome: self._on_piece(reader, outcome))

    def _on_piece(self, reader: SnapshotReader, outcome: Outcome) -> None:
        if outcome.error is not None:
            reader.close()
            self._fail(outcome.error)
            return
        self._run(self._give(reader, outcome.value), reader, is_last=not outcome.value)

    def _give(self, reader: SnapshotReader, batches: bytes) -> Sliced[None]:
        if self._loads is None:
            loads = [listener.on_snapshot(reader.heading) for listener in self._listeners]
            self._loads = [load for load in loads if load is not None]
        for load in self._loads:
            yield from (load.add(batches) if batches else load.finish()) or ()

    def _run(self, steps: Sliced[None], reader: SnapshotReader, is_last: bool) -> None:
        """One step in this turn, every other one in a turn of its own."""
        if self._stopped:
            reader.close()
            return
        try:
            is_done = next(steps, True)
        except Exception as error:
            reader.close()
            self._fail(error)
            return
        if not is_done:
            asyncio.get_running_loop().call_soon(self._run, steps, reader, is_last)
        elif is_last:
            reader.close()
            self._on_done()
        else:
            self._read_next(reader)

    def _fail(self, error: Exception) -> None:
        if not self._stopped:
            self._stopped = True
            self._on_failed(error)
