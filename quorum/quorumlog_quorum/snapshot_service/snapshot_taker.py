"""Takes snapshots of a node's own committed metadata, by bytes of the log and by time.

A snapshot is of the image at the end of a delivered batch, so it is committed and never inside a batch, nor inside a
metadata transaction: it waits for its end. The image is immutable: it is encoded a slice in each turn of the loop,
while newer records are applied, and written by the worker of the metadata log in pieces, one at a time. One snapshot is
under way at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from quorumlog.clock import Clock
from quorumlog.ids import Epoch, Offset
from quorumlog.records import headers
from quorumlog.records.control import KRaftVersion, Voters
from quorumlog.settings.metadata_log import NEVER, SnapshotConfig
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshots import PartFile, SnapshotEncoder, SnapshotHeading, SnapshotId, StoredSnapshot

_log = logging.getLogger("quorumlog.quorum")

PIECE_BYTES = 256 << 10  # of one write
ASKED_AGAIN_MS = 10_000  # between two snapshots that take the place of damaged ones: a disk may damage everything

Slices = Iterator[Sequence[bytes]]  # values of records; each is encoded in one turn of the loop
VotersAt = Callable[[Offset], tuple[KRaftVersion | None, Voters | None]]


class SnapshotEnd(NamedTuple):
    """Where a snapshot may end: of the last record before `offset` (exclusive), its epoch and its timestamp."""

    offset: Offset
    epoch: Epoch
    timestamp_ms: int


class SnapshotTaker:
    def __init__(
        self,
        *,
        store: SnapshotStore,
        config: SnapshotConfig,
        clock: Clock,
        slices: Callable[[], Slices | None],
        voters_at: VotersAt,
        applied: Callable[[], Offset | None],
        on_taken: Callable[[SnapshotId], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        """slices: of the committed image, asked for between two batches; None inside a metadata transaction.

        on_taken: the snapshot is durable.

        voters_at: what the snapshot says of the voters at its end. applied: exclusive end of what the image holds; None
        in the middle of a batch.
        """
        self._store, self._config, self._clock = store, config, clock
        self._slices, self._voters_at, self._applied = slices, voters_at, applied
        self._on_taken, self._on_error = on_taken, on_error
        self._last: SnapshotEnd | None = None  # of what was delivered
        self._bytes = 0  # delivered since the last snapshot
        self._last_ms = clock.now_ms()  # when the last one was begun, or the process started
        self._is_wanted = False
        self._asked_again_ms = clock.now_ms()  # the earliest time for one that was asked for
        self._is_busy = False
        self._stopped = False

    def ask(self) -> None:
        """One was lost: take another one now, or at the end of the batch that is being applied, despite the limits.

        One that is under way will do.
        """
        if self._is_busy or self._stopped:
            return
        self._is_wanted = True
        if self._last is not None and self._applied() == self._last.offset and self._is_due():
            self._take(self._last)

    def stop(self) -> None:
        self._stopped = True

    def on_delivered(self, batches: bytes, end_offset: Offset) -> None:
        """All listeners have applied these batches, which end there."""
        self._bytes += len(batches)
        last = headers(batches)[-1]
        self._last = SnapshotEnd(end_offset, last.leader_epoch, max(0, last.max_timestamp))
        if not self._is_busy and not self._stopped and self._is_due():
            self._take(self._last)

    def _take(self, end: SnapshotEnd) -> None:
        """The image holds everything up to there."""
        slices = self._slices()
        if slices is None:
            return  # it stays due
        snapshot, now_ms = SnapshotId(end.offset, end.epoch), self._clock.now_ms()
        if self._is_wanted:
            self._asked_again_ms = now_ms + ASKED_AGAIN_MS
        self._bytes, self._last_ms, self._is_wanted = 0, now_ms, False
        if self._store.holds(snapshot):
            return
        self._is_busy = True
        version, voters = self._voters_at(end.offset)
        heading = SnapshotHeading(
            id=snapshot,
            last_contained_timestamp_ms=end.timestamp_ms,
            kraft_version=None if version is None else version.level,
            voters=voters,
        )
        taking = _Taking(self._store, heading, slices, self._end)
        asyncio.get_running_loop().call_soon(self._go_on, taking)

    def _is_due(self) -> bool:
        config, now_ms = self._config, self._clock.now_ms()
        by_bytes = config.bytes_between != NEVER and self._bytes >= config.bytes_between
        by_time = config.interval_ms != NEVER and now_ms - self._last_ms >= config.interval_ms
        return by_bytes or by_time or (self._is_wanted and now_ms >= self._asked_again_ms)

    def _go_on(self, taking: _Taking) -> None:
        """One slice a turn; after a piece was given to the disk, when it is written."""
        if self._stopped:
            return
        try:
            if taking.take_slice(lambda: self._go_on(taking)):
                asyncio.get_running_loop().call_soon(self._go_on, taking)
        except Exception as error:
            self._on_error(error)

    def _end(self, snapshot: StoredSnapshot) -> None:
        self._is_busy = False
        self._store.add(snapshot)
        _log.info("took snapshot %s of the metadata: %d bytes", snapshot.id, snapshot.size)
        self._on_taken(snapshot.id)


class _Taking:
    """One snapshot on its way to the disk."""

    def __init__(
        self, store: SnapshotStore, heading: SnapshotHeading, slices: Slices, on_end: Callable[[StoredSnapshot], None]
    ) -> None:
        self._store, self._heading, self._slices, self._on_end = store, heading, slices, on_end
        self._part: PartFile = store.new_part(heading.id)
        self._encoder = SnapshotEncoder(heading)
        self._waiting: list[bytes] = [self._encoder.begin()]
        self._waiting_bytes = 0
        self._is_created = False

    def take_slice(self, go_on: Callable[[], None]) -> bool:
        """Encode one slice. True: call it again in the next turn. False: `go_on` follows a write, or it ends."""
        values = next(self._slices, None)
        self._add(self._encoder.end() if values is None else self._encoder.values(values))
        if values is None:
            self._write(self._finish)
            return False
        if self._waiting_bytes >= PIECE_BYTES:
            self._write(go_on)
            return False
        return True

    def _add(self, batch: bytes) -> None:
        self._waiting.append(batch)
        self._waiting_bytes += len(batch)

    def _write(self, then: Callable[[], None]) -> None:
        piece, self._waiting, self._waiting_bytes = b"".join(self._waiting), [], 0
        creates, self._is_created = not self._is_created, True

        def write() -> None:
            if creates:
                self._part.create()
            self._part.append(piece)

        self._store.submit(write, lambda _: then(), len(piece))

    def _finish(self) -> None:
        stored = StoredSnapshot(self._heading.id, self._part.size, self._heading.last_contained_timestamp_ms)
        self._store.submit(self._part.freeze, lambda _: self._on_end(stored))
