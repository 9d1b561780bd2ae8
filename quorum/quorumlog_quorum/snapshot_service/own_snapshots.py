"""What a running node does with snapshots by itself: takes and serves them, keeps to retention, replaces a lost one."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.clock import Clock
from quorumlog.ids import Offset
from quorumlog.settings.metadata_log import SnapshotConfig
from quorumlog_quorum.disk.metadata_log import MetadataLog, OnError
from quorumlog_quorum.raft import LogStartRaised, RaftEvent, SnapshotLost, SnapshotTaken
from quorumlog_quorum.snapshot_service.served_snapshots import ServedSnapshots
from quorumlog_quorum.snapshot_service.snapshot_keeper import SnapshotKeeper
from quorumlog_quorum.snapshot_service.snapshot_store import SnapshotStore
from quorumlog_quorum.snapshot_service.snapshot_taker import Slices, SnapshotTaker, VotersAt
from quorumlog_quorum.snapshots import SnapshotId


class OwnSnapshots:
    def __init__(
        self,
        *,
        store: SnapshotStore,
        log: MetadataLog,
        config: SnapshotConfig,
        clock: Clock,
        slices: Callable[[], Slices | None] | None,
        voters_at: VotersAt,
        delivered: Callable[[], Offset],
        applied: Callable[[], Offset | None],
        step: Callable[[RaftEvent], None],
        on_error: OnError,
    ) -> None:
        """slices, voters_at, applied: see SnapshotTaker; slices None: none is taken. delivered: see SnapshotKeeper.

        step: gives an event to the core.
        """
        self._step = step
        self.served = ServedSnapshots(store, clock, self.on_lost)
        self._keeper = SnapshotKeeper(
            store=store,
            log=log,
            config=config,
            clock=clock,
            delivered=delivered,
            on_start_raised=lambda oldest: step(LogStartRaised(oldest)),
            on_damaged=self.on_lost,
        )
        self._taker: SnapshotTaker | None = None
        if slices is not None:
            self._taker = SnapshotTaker(
                store=store,
                config=config,
                clock=clock,
                slices=slices,
                voters_at=voters_at,
                applied=applied,
                on_taken=lambda snapshot: step(SnapshotTaken(snapshot)),
                on_error=on_error,
            )

    async def run(self) -> None:
        """Looks at retention again and again."""
        await self._keeper.run()

    def stop(self) -> None:
        if self._taker is not None:
            self._taker.stop()

    def on_delivered(self, batches: bytes, end_offset: Offset) -> None:
        """All listeners have applied these batches, which end there."""
        if self._taker is not None:
            self._taker.on_delivered(batches, end_offset)

    def on_lost(self, snapshot: SnapshotId) -> None:
        """It cannot be used any more. Another one is taken at once, or as soon as the image is whole."""
        self._step(SnapshotLost(snapshot))
        if self._taker is not None:
            self._taker.ask()
