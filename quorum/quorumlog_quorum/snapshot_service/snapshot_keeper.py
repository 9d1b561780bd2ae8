"""Retention of the metadata log and its snapshots: a look every minute (KIP-630).

The oldest snapshot goes only if the next one was read and found intact. Then the log starts where that one ends; the
core knows first, so that it offers nothing that is about to go. A damaged snapshot causes nothing but another one.

A segment that is old is closed, so that a cluster at rest gives back what it has written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorumlog.clock import Clock
from quorumlog.ids import Offset
from quorumlog.settings.metadata_log import SnapshotConfig
from quorumlog_quorum.disk.metadata_log import MetadataLog
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshots import SnapshotId, StoredSnapshot, snapshots_to_drop
from quorumlog_quorum.snapshots.retention import free_deleted, set_deleted
from quorumlog_storage.writer.writer import Outcome


class SnapshotKeeper:
    def __init__(
        self,
        *,
        store: SnapshotStore,
        log: MetadataLog,
        config: SnapshotConfig,
        clock: Clock,
        delivered: Callable[[], Offset],
        on_start_raised: Callable[[SnapshotId], None],
        on_damaged: Callable[[SnapshotId], None],
    ) -> None:
        """delivered: exclusive end of what the listeners have; the log's start does not pass it.

        on_start_raised: called before anything is removed. on_damaged: called with a snapshot that cannot be read.
        """
        self._store, self._log, self._config, self._clock = store, log, config, clock
        self._delivered, self._on_start_raised, self._on_damaged = delivered, on_start_raised, on_damaged
        self._verified: dict[SnapshotId, None] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._config.check_interval_ms / 1000)
            self.check()

    def check(self) -> None:
        """Look once. What it begins goes on by itself."""
        directory, disk = self._store.directory, self._store.disk
        self._store.submit(lambda: free_deleted(disk, directory), _ignore)
        now_ms = self._clock.wall_ms()
        self._store.submit(lambda: self._log.roll_if_older(self._config.segment_ms, now_ms), _ignore)
        outdated = [one.id for one in self._store.stored if one.id.offset < self._log.start_offset]
        if outdated:  # a newer one took the place of the log
            self._store.forget(outdated)
            self._store.submit(lambda: set_deleted(disk, directory, outdated), _ignore)
        self._retain()

    def _retain(self) -> None:
        stored = self._store.stored
        dropped = snapshots_to_drop(stored, self._log.size_bytes, self._clock.wall_ms(), self._config.retention)
        if not dropped:
            return
        oldest = stored[len(dropped)].id
        if oldest.offset > self._delivered():
            return
        if oldest in self._verified:
            self._drop(dropped, oldest)
        else:
            self._store.verify(oldest, lambda outcome: self._on_verified(oldest, outcome))

    def _on_verified(self, snapshot: SnapshotId, outcome: Outcome) -> None:
        if outcome.error is None:
            self._verified[snapshot] = None
            self._retain()
        elif self._store.holds(snapshot) and self._store.give_up(snapshot, outcome.error):
            self._on_damaged(snapshot)

    def _drop(self, dropped: tuple[StoredSnapshot, ...], oldest: SnapshotId) -> None:
        gone = [snapshot.id for snapshot in dropped]
        self._verified = {snapshot: None for snapshot in self._verified if snapshot not in gone}
        self._store.forget(gone)
        self._on_start_raised(oldest)
        self._store.submit(lambda: self._log.raise_start(oldest, gone), _ignore)


def _ignore(_: object) -> None:
    pass
