"""What opening this broker's logs found: what was cut, and which replicas lack records that they may have acknowledged.

Kept for the life of the process, for the log, the metrics and `quorumlog status`.

A replica that has lost synced records is *unreported* until the controller has accepted a registration that lists it.
The note on disk (`lost-offset-checkpoint`) goes only after that, so a process that ends in between is followed by one
that tells it. A broker with unreported damage asks to stay fenced: it could be elected otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from quorumlog.ids import Offset
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.recovery.recovery import RecoveryReport

_log = logging.getLogger("quorumlog.broker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """name: topic and partition. lost_before: see `PartitionLog`."""

    name: str
    path: str
    report: RecoveryReport
    lost_before: Offset

    def __str__(self) -> str:
        return f"{self.name}: {self.report.describe(self.path, self.lost_before)}"


class RecoveryFindings:
    """Used on the loop."""

    def __init__(self, on_changed: Callable[[], None]) -> None:
        """on_changed: there is unreported damage, or there is none any more."""
        self._on_changed = on_changed
        self._found: dict[PartitionKey, Finding] = {}
        self._unreported: dict[PartitionKey, tuple[DirectoryQueue, PartitionLog]] = {}

    @property
    def all(self) -> list[Finding]:
        """By topic and partition."""
        return sorted(self._found.values(), key=lambda finding: finding.name)

    @property
    def unreported(self) -> tuple[PartitionKey, ...]:
        """In order of topic id and index."""
        return tuple(sorted(self._unreported))

    def opened(self, key: PartitionKey, name: str, queue: DirectoryQueue, opened: PartitionLog) -> None:
        """Called once for each log that this process has opened."""
        report = opened.log.recovery
        if not report.is_damage and not opened.lost_before:
            return
        finding = Finding(name=name, path=opened.log.path, report=report, lost_before=opened.lost_before)
        self._found[key] = finding
        if opened.lost_before:
            _log.error("damaged: %s", finding)
            self._unreported[key] = (queue, opened)
            self._on_changed()
        else:
            _log.warning("recovered: %s", finding)

    def told(self, keys: Iterable[PartitionKey]) -> None:
        """The controller has accepted a registration that lists these."""
        for key in keys:
            if key in self._unreported:
                queue, opened = self._unreported[key]
                queue.start(self._forget(key, queue.run(opened.forget_loss, Lane.BACKGROUND)), "forget a loss")

    async def _forget(self, key: PartitionKey, forgetting: Awaitable[None]) -> None:
        with suppress(Exception):  # where the note could not be removed, the next process tells it again
            await forgetting
        if self._unreported.pop(key, None) is not None and not self._unreported:
            self._on_changed()
