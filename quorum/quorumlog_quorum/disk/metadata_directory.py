"""What the quorum keeps on disk, in the directory of the metadata log: the log, `quorum-state`, the recovery point.

A log that ends before its recovery point lacks records that this node may have acknowledged. That is noted on disk
(`lost-offset-checkpoint`) until the core says that the log holds all that is committed.

One writer changes them all, and it serves the quorum alone: the opening of a thousand partitions, or a slow turn of
their syncs, must not delay a vote or a commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from quorumlog.ids import Offset
from quorumlog_quorum.disk.membership_scan import read_members
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.raft import MembershipRecord, QuorumState
from quorumlog_quorum.raft.quorum_state import QUORUM_STATE_NAME, read_quorum_state, write_quorum_state
from quorumlog_quorum.snapshots import list_snapshots
from quorumlog_quorum.snapshots.opening import OpenedSnapshots, open_snapshots
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.offset_files import LOG_STARTS, LOST_OFFSETS, RECOVERY_POINTS, OffsetFile
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import Disk, DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import is_back_pressure
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.log_file import holds_records
from quorumlog_storage.writer.worker import Worker, WorkerClosed, WorkerFull
from quorumlog_storage.writer.writer import CallJob, Outcome

_log = logging.getLogger("quorumlog.quorum")

JOINED_NAME = "was-voter"  # an empty file: this directory was a voter once, and does not join again by itself
PERSIST_TRIES = 3  # where too many files are open; each has waited for a descriptor

METADATA_LOG = LogConfig(segment_bytes=64 << 20)  # an unclean start reads about so much: the last segment


@dataclass(frozen=True, slots=True)
class OpenedMetadata:
    """lost_before: the log was synced up to there once, exclusive, and was found shorter; 0: it was not.

    members: what the bootstrap checkpoint, the snapshots and the log say about the voters. has_joined: a committed set
    has named this directory once.
    """

    checkpointed: CheckpointedLog
    state: QuorumState
    lost_before: Offset
    snapshots: OpenedSnapshots
    starts: OffsetFile  # with the log's start; for the worker only
    members: tuple[MembershipRecord, ...] = ()
    has_joined: bool = False

    @property
    def log(self) -> Log:
        return self.checkpointed.log

    @property
    def finding(self) -> str:
        """What opening the log found, for people; empty for a log that is whole."""
        report = self.log.recovery
        return report.describe(self.log.path, self.lost_before) if report.is_damage or self.lost_before else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataDirectory:
    """worker: of the metadata log's directory; its path is the directory's.

    older_points: of the log directory that holds it. Earlier releases noted the metadata log's recovery point there.
    Until `open` has returned, nothing else may use that file. None: there is none.
    """

    worker: Worker
    disk: Disk
    log_config: LogConfig
    older_points: OffsetFile | None = None
    clean: bool = False

    async def open(self) -> OpenedMetadata:
        """Raises CorruptQuorumState, SnapshotMissing, DirectoryOffline, WorkerFull."""
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.worker.submit(CallJob(self._open), _ignore, lambda outcome: settle(done, outcome))
        outcome = await done
        if outcome.error is not None:
            raise outcome.error
        opened: OpenedMetadata = outcome.value
        _tell_findings(opened)
        return opened

    def persist(self, state: QuorumState, on_done: Callable[[Outcome], None]) -> None:
        """on_done: called when the state is durable, or with an error. Raises WorkerFull.

        The write syncs the file itself, so `on_done` does not wait for the sync of other files.
        """
        job = CallJob(lambda: self._persist(state))
        self.worker.submit(job, on_done, _ignore)

    def forget_loss(self, on_error: Callable[[Exception], None]) -> None:
        """The log holds again what it lacked. A full worker leaves the note: the next process catches up again."""

        def done(outcome: Outcome) -> None:
            if outcome.error is not None:
                on_error(outcome.error)

        try:
            self.worker.submit(CallJob(lambda: self._lost_offsets.update({METADATA_PARTITION: None})), done, _ignore)
        except (WorkerFull, WorkerClosed):
            pass

    def note_joined(self, on_error: Callable[[Exception], None]) -> None:
        """This directory is a voter's. A full worker leaves no note: the next process notes it."""

        def done(outcome: Outcome) -> None:
            if outcome.error is not None:
                on_error(outcome.error)

        path = f"{self.worker.path}/{JOINED_NAME}"
        try:
            self.worker.submit(CallJob(lambda: write_atomically(self.disk, path, b"")), done, _ignore)
        except (WorkerFull, WorkerClosed):
            pass

    def _persist(self, state: QuorumState) -> None:
        """In the worker. Without a descriptor the vote waits, and with it the election; nothing was changed then."""
        for tries_left in reversed(range(PERSIST_TRIES)):
            try:
                write_quorum_state(self.disk, self._state_path, state)
                return
            except DiskError as error:
                if not tries_left or not is_back_pressure(error):
                    raise

    @property
    def _state_path(self) -> str:
        return f"{self.worker.path}/{QUORUM_STATE_NAME}"

    @property
    def _lost_offsets(self) -> OffsetFile:
        return OffsetFile(self.disk, f"{self.worker.path}/{LOST_OFFSETS}")

    def _open(self) -> OpenedMetadata:
        """In the worker. The older line goes first: no truncation would lower it, and an earlier release trusts it."""
        path = self.worker.path
        state = read_quorum_state(self.disk, self._state_path, has_records=_holds_state(self.disk, path))
        if self.older_points is not None:
            self.older_points.update({METADATA_PARTITION: None})
        lost_offsets = self._lost_offsets
        log = CheckpointedLog.open(
            self.disk,
            path,
            self.log_config,
            OffsetFile(self.disk, f"{path}/{RECOVERY_POINTS}"),
            METADATA_PARTITION,
            clean=self.clean,
            on_loss=partial(lost_offsets.raise_to, METADATA_PARTITION),
        )
        starts = OffsetFile(self.disk, f"{path}/{LOG_STARTS}")
        snapshots = open_snapshots(self.disk, path, log, starts)
        if snapshots.latest is not None and snapshots.latest.id.offset >= lost_offsets.get(METADATA_PARTITION):
            lost_offsets.update({METADATA_PARTITION: None})  # the snapshot holds all that was lost
        return OpenedMetadata(
            log,
            state,
            lost_offsets.get(METADATA_PARTITION),
            snapshots,
            starts,
            read_members(self.disk, path, log.log),
            self.disk.exists(f"{path}/{JOINED_NAME}"),
        )


def _holds_state(disk: Disk, path: str) -> bool:
    """Whether a log or a snapshot is there, so that a vote may have been given, too."""
    if holds_records(disk, path):
        return True
    names = disk.list(path) if disk.exists(path) else []
    return any(snapshot.offset > 0 for snapshot in list_snapshots(names).snapshots)


def _tell_findings(opened: OpenedMetadata) -> None:
    if opened.lost_before:
        _log.error(
            "damaged: %s; this node does not vote before it has caught up with a leader that the other voters elect; "
            "where they cannot elect one, quorumlog storage accept-metadata-loss -c FILE --unsafe makes it vote with "
            "what it has",
            opened.finding,
        )
    elif opened.finding:
        _log.warning("recovered: %s", opened.finding)


def settle(future: asyncio.Future[Any], value: Any) -> None:
    """Set a future's result, unless it is done or cancelled."""
    if not future.done():
        future.set_result(value)


def _ignore(_: Outcome) -> None:
    pass
