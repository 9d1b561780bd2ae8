"""Log directories that failed and are brought back while the broker runs (`quorumlog log-dirs online`).

Order: the directory is listed, and strays are set aside; its replicas are hosted anew, as followers; every log is
verified from its first byte; then, and not before, the directory counts as online. A log that was cut, or has lost
synced records, is treated as at a start (`recovery_findings.py`). Where the directory fails again meanwhile, nothing
was online.
"""

from __future__ import annotations

import asyncio

from quorumlog_broker.logdirs.log_directory import LogDirectory
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.logs_to_open import LogsToOpen
from quorumlog_broker.replicas.placements import Placements
from quorumlog_storage.writer.directory_life import DirectoryOffline, LifeEvent


class DirectoryReturns:
    """Used on the loop."""

    def __init__(self, store: PartitionStore, placements: Placements) -> None:
        self._store, self._placements = store, placements
        self._openings: list[LogsToOpen] = []

    @property
    def waiting(self) -> tuple[PartitionKey, ...]:
        """The logs of returning directories that are not verified yet."""
        return tuple(key for opening in self._openings for key in opening.waiting)

    def settled(self, key: PartitionKey) -> None:
        """See `LogsToOpen.settled`."""
        for opening in list(self._openings):
            opening.settled(key)

    async def take_back(self, directory: LogDirectory) -> None:
        """Returns once every log in it is verified, and it is online. Raises DirectoryOffline, ApiError.

        directory: of a new generation, opened and locked, not online yet.
        """
        queue = await self._store.take_back(directory)
        done = asyncio.Event()
        opening = LogsToOpen(done.set)
        self._openings.append(opening)
        directory.life.on_failed(lambda _: done.set())
        try:
            replicas = self._placements.directory_returned(queue)
            opening.expect(replica.key for replica in replicas if replica.log is None and not replica.core.failed)
            await done.wait()
        finally:
            self._openings.remove(opening)
        failure = directory.generation.failure
        if failure is not None or not queue.is_usable:
            raise failure or DirectoryOffline(directory.path, RuntimeError("it was closed"))
        directory.life.step(LifeEvent.VERIFIED, directory.generation)
