"""Delivery of what is committed to the listeners: in order, once, and bounded by work.

What is read at once is bounded by bytes. What is done with it in one turn of the loop is bounded by the listener, which
returns its work as steps: a batch of 10,000 records, or a megabyte of them, must not hold up heartbeats and votes.
A listener that raises stops the node: it must not act on half an image.

Where the log begins behind a snapshot, the listeners get the snapshot first. That happens at the start, and when a
snapshot takes the place of the log of a running node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint
from quorumlog.records import CorruptRecords, headers
from quorumlog.slices import OneATurn, Rotation, Sliced
from quorumlog_quorum.disk.metadata_log import MetadataLog, OnError
from quorumlog_quorum.metadata.frame import BadRecord, ReplayError
from quorumlog_quorum.metadata.listener import RaftListener
from quorumlog_quorum.metadata.snapshot_records import WrongState
from quorumlog_quorum.snapshot_service.snapshot_loading import SnapshotLoading, SnapshotUnreadable
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshots import CorruptSnapshot, SnapshotId
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.writer.worker import WorkerFull

CHUNK_BYTES = 1 << 20  # of one read; one batch is read even if it is larger
WRONG_CONTENT = (WrongState, BadRecord, ReplayError)  # of a snapshot whose checksums are good
RETRY_MS = 5  # while the worker's queue of reads is full

# Errors of a snapshot's file or content. Any other error of a load stops the node.
UNUSABLE = (*WRONG_CONTENT, CorruptSnapshot, SnapshotUnreadable, CorruptRecords, DiskError)

OnDelivered = Callable[[bytes, Offset], None]  # batches that every listener has applied, and their exclusive end


def _ignore(_batches: bytes, _end_offset: Offset) -> None:
    pass


class Delivery:
    """One read or one snapshot is under way at a time. `stopped` ends everything: what arrives later is dropped."""

    def __init__(
        self,
        log: MetadataLog,
        start_offset: Offset,
        listeners: Sequence[RaftListener],
        on_error: OnError,
        store: SnapshotStore | None = None,
        on_delivered: OnDelivered = _ignore,
        on_unusable: Callable[[SnapshotId], None] | None = None,
    ) -> None:
        """start_offset: where the log begins, without any snapshot.

        store: None where there are no snapshots. on_unusable: called at the start with a snapshot that no listener can
        use; an older one is taken instead.
        """
        self._log, self._listeners, self._on_error = log, listeners, on_error
        self._store, self._on_delivered, self._on_unusable = store, on_delivered, on_unusable
        self._log_start = self._delivered = start_offset  # the latter: exclusive end of what was delivered
        self._target = start_offset
        self._claim: tuple[Epoch, Offset] | None = None  # announced once all records before its end are delivered
        self._claimed: Epoch | None = None
        self._reading = False
        self._installed: SnapshotId | None = None  # took the place of the log, and is not loaded yet
        self._loading: SnapshotLoading | None = None
        self._works = Rotation()  # the one delivery that is under way
        self._turns = OneATurn(self._works, lambda call: asyncio.get_running_loop().call_soon(call), self._in_own_turn)
        self.stopped = False

    def start(self) -> None:
        """Load the latest snapshot, if there is one."""
        latest = self._store.latest if self._store is not None else None
        if latest is not None and latest.id.offset > 0:
            self._load(latest.id, self._on_unusable_at_start)

    def stop(self) -> None:
        self.stopped = True
        self._works.clear()
        if self._loading is not None:
            self._loading.stop()

    @property
    def delivered(self) -> Offset:
        """Exclusive end of what the listeners have been given."""
        return self._delivered

    @property
    def applied(self) -> Offset | None:
        """The same, if no listener is in the middle of a batch or a snapshot; else None."""
        return None if self._reading else self._delivered

    def on_installed(self, snapshot: SnapshotId) -> None:
        """This snapshot took the place of the log, which begins behind it now."""
        self._installed = snapshot
        self._log_start = snapshot.offset
        if not self._reading:
            self._go_on()

    def on_high_watermark(self, offset: Offset) -> None:
        self._target = max(self._target, offset)
        for listener in self._listeners:
            listener.on_high_watermark(offset)
        self._read_next()

    def on_claimed(self, epoch: Epoch, end_offset: Offset) -> None:
        self._claim = (epoch, end_offset)
        self._tell_claim()

    def on_hand_over(self, epoch: Epoch) -> None:
        """A claim that was not announced yet is dropped: the leader may still go on, and then it claims again."""
        self._claim = None
        if self._claimed == epoch:
            for listener in self._listeners:
                listener.on_hand_over(epoch)

    def on_lost(self, epoch: Epoch) -> None:
        """A claim that was never announced needs no `on_resign`."""
        self._claim = None
        if self._claimed == epoch:
            self._claimed = None
            for listener in self._listeners:
                listener.on_resign(epoch)

    def on_leader_changed(self, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None) -> None:
        for listener in self._listeners:
            listener.on_leader_change(leader_id, epoch, endpoint)

    # --- records ---

    def _read_next(self) -> None:
        if self._reading or self.stopped or self._delivered >= self._target:
            return
        self._reading = True
        try:
            self._log.read(self._delivered, CHUNK_BYTES, self._target, self._on_read)
        except WorkerFull:
            asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._in_own_turn, self._go_on)

    def _go_on(self) -> None:
        """Nothing is under way: load the snapshot that took the place of the log, or read on."""
        self._reading = False
        if self._installed is not None:
            installed, self._installed = self._installed, None
            assert installed.offset > self._delivered, f"{installed} holds less than was delivered: {self._delivered}"
            self._load(installed, self._on_error)
        else:
            self._read_next()

    def _on_read(self, batches: bytes) -> None:
        if self.stopped:
            return
        if self._installed is not None:
            self._go_on()
            return
        if not batches:  # the log was cut behind a snapshot, and `on_installed` follows
            self._reading = False
            return
        end_offset = headers(batches)[-1].next_offset
        assert self._delivered < end_offset <= self._target, (self._delivered, end_offset, self._target)
        self._works.add(self._tell_all(batches, end_offset), lambda _: self._told(batches, end_offset))
        self._works.run_slice()  # the first one in the turn that read the batches
        self._turns.ask()

    def _tell_all(self, batches: bytes, end_offset: Offset) -> Sliced[None]:
        """Run all steps of each listener, one listener after the other."""
        for listener in self._listeners:
            yield from listener.on_committed(batches, end_offset) or ()

    def _told(self, batches: bytes, end_offset: Offset) -> None:
        self._delivered = end_offset
        self._on_delivered(batches, end_offset)
        self._tell_claim()
        if self._delivered < self._target or self._installed is not None:
            asyncio.get_running_loop().call_soon(self._in_own_turn, self._go_on)
        else:
            self._reading = False  # only now: a call by a listener must not start the next read

    # --- snapshots ---

    def _load(self, snapshot: SnapshotId, on_failed: OnError) -> None:
        assert self._store is not None
        self._reading = True
        loading = SnapshotLoading(
            self._store, snapshot, self._listeners, lambda: self._in_own_turn(self._on_loaded, snapshot), on_failed
        )
        self._loading = loading
        loading.start()

    def _on_loaded(self, snapshot: SnapshotId) -> None:
        self._loading = None
        self._delivered = snapshot.offset
        self._target = max(self._target, snapshot.offset)
        self._tell_claim()
        self._go_on()

    def _on_unusable_at_start(self, error: Exception) -> None:
        """Try the snapshot before it, as long as the log continues there; else all of the log."""
        assert self._store is not None and self._loading is not None
        failed, self._loading = self._loading.snapshot, None
        older = [one.id for one in self._store.stored if one.id.offset < failed.offset]
        behind = older[-1].offset if older else 0
        if not isinstance(error, UNUSABLE) or self._on_unusable is None or behind < self._log_start:
            self._on_error(error)
            return
        if isinstance(error, WRONG_CONTENT):
            self._store.set_aside(failed, str(error))
        else:
            self._store.forget_damaged(failed, str(error))
        self._on_unusable(failed)
        if behind > 0:
            self._load(older[-1], self._on_unusable_at_start)
        else:
            self._go_on()

    def _in_own_turn(self, action: Callable[..., None], *arguments: Any) -> None:
        if self.stopped:
            return
        try:
            action(*arguments)
        except Exception as error:
            self._on_error(error)

    def _tell_claim(self) -> None:
        if self._claim is not None and self._delivered >= self._claim[1]:
            (epoch, end_offset), self._claim = self._claim, None
            self._claimed = epoch
            for listener in self._listeners:
                listener.on_claim(epoch, end_offset)
