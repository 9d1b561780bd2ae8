"""What the quorum keeps on disk, in the directory of the metadata log: the log, `quorum-state`, the recovery point.

One writer changes them all, and it serves the quorum alone: the opening of a thousand partitions, or a slow turn of
their syncs, must not delay a vote or a commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quorum.metadata_log import METADATA_PARTITION
from quorum.raft import QuorumState
from quorum.raft.quorum_state import QUORUM_STATE_NAME, read_quorum_state, write_quorum_state
from storage.disk import Disk
from storage.log import Log
from storage.log_config import LogConfig
from storage.offset_files import OffsetFile
from storage.worker import Worker
from storage.writer import CallJob, Outcome

METADATA_LOG = LogConfig(segment_bytes=64 << 20)  # an unclean start reads about so much: the last segment


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataDirectory:
    """worker: of the metadata log's directory; its path is the directory's.

    recovery_points: a file in that directory; None: keep none, and an unclean start reads the whole log.
    """

    worker: Worker
    disk: Disk
    log_config: LogConfig
    recovery_points: OffsetFile | None = None
    clean: bool = False

    async def open(self) -> tuple[Log, QuorumState]:
        """Raises CorruptQuorumState, DirectoryOffline, WorkerFull."""
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.worker.submit(CallJob(self._open), _ignore, lambda outcome: settle(done, outcome))
        outcome = await done
        if outcome.error is not None:
            raise outcome.error
        opened: tuple[Log, QuorumState] = outcome.value
        return opened

    def persist(self, state: QuorumState, on_done: Callable[[Outcome], None]) -> None:
        """on_done: called when the state is durable, or with an error. Raises WorkerFull.

        The write syncs the file itself, so `on_done` does not wait for the sync of other files.
        """
        job = CallJob(lambda: write_quorum_state(self.disk, self._state_path, state))
        self.worker.submit(job, on_done, _ignore)

    @property
    def _state_path(self) -> str:
        return f"{self.worker.path}/{QUORUM_STATE_NAME}"

    def _open(self) -> tuple[Log, QuorumState]:
        point = 0 if self.recovery_points is None else self.recovery_points.get(METADATA_PARTITION)
        log = Log.open(self.disk, self.worker.path, self.log_config, recovery_point=point, clean=self.clean)
        return log, read_quorum_state(self.disk, self._state_path)


def settle(future: asyncio.Future[Any], value: Any) -> None:
    """Set a future's result, unless it is done or cancelled."""
    if not future.done():
        future.set_result(value)


def _ignore(_: Outcome) -> None:
    pass
