"""How far the opening of this broker's logs has come, for the log, the metrics and `quorumlog status` (KIP-831).

Segments and bytes are those that the logs under way still have to verify: how much the others have, nobody has looked
at. A log that was closed cleanly has none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quorumlog.clock import Clock
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.leaderships import Leaderships
from quorumlog_broker.replicas.logs_to_open import LogsToOpen
from quorumlog_broker.replicas.registry import Registry

REPORT_INTERVAL_MS = 5_000

_log = logging.getLogger("quorumlog.broker")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryProgress:
    """Of one log directory: logs that are not open yet; segments and bytes to verify of those under way."""

    path: str
    logs_left: int
    segments_left: int
    bytes_left: int

    def __str__(self) -> str:
        text = f"{self.path}: {self.logs_left} logs to open"
        if self.segments_left:
            text += f", {self.segments_left} segments with {self.bytes_left:,} bytes to verify in those under way"
        return text


class OpeningProgress:
    """Used on the loop."""

    def __init__(
        self, waiting: Callable[[], Iterable[PartitionKey]], registry: Registry, leaderships: Leaderships
    ) -> None:
        """waiting: the logs that are to be opened and are not."""
        self._waiting, self._registry, self._leaderships = waiting, registry, leaderships

    def by_directory(self) -> list[DirectoryProgress]:
        """Directories with logs that are not open yet, by path; empty once all are open."""
        left: dict[str, int] = {}
        for key in self._waiting():
            replica = self._registry.replicas.get(key)
            if replica is not None and replica.queue is not None:
                path = replica.queue.directory.path
                left[path] = left.get(path, 0) + 1
        scans = {queue.directory.path: found for queue, found in self._leaderships.progress().items()}
        return [
            DirectoryProgress(
                path=path,
                logs_left=count,
                segments_left=sum(one.segments_left for one in scans.get(path, ())),
                bytes_left=sum(one.bytes_left for one in scans.get(path, ())),
            )
            for path, count in sorted(left.items())
        ]


async def report_until_open(opening: LogsToOpen, report: Callable[[], list[DirectoryProgress]], clock: Clock) -> None:
    """Write the progress to the log now and then, until all logs are open, and then how long that took."""
    begun_ms = clock.now_ms()
    told = 0
    while not opening.done:
        for one in report():
            _log.info("opening the logs of %s", one)
            told += 1
        await asyncio.sleep(REPORT_INTERVAL_MS / 1_000)
    if told:
        _log.info("all logs are open after %d s", (clock.now_ms() - begun_ms) // 1_000)
