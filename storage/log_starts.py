"""Where the logs of one directory start, if not with their first segment: `log-start-offset-checkpoint` (FORMATS 4.6).

Deleted records must not come back: a start is on disk here before anything is removed, and before anybody is told.
Entries may be too low, never too high; a log that begins after its entry needs none.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.ids import Offset
from storage.checkpoint import OffsetsFile, TopicPartition
from storage.disk import Disk

LOG_STARTS = "log-start-offset-checkpoint"


class LogStarts:
    """Used by the directory's writer only; read at its first use. An unreadable file counts as empty."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._file = OffsetsFile(disk, f"{directory}/{LOG_STARTS}")

    def get(self, partition: TopicPartition) -> Offset:
        """0 where none is known."""
        return self._file.get(partition)

    def raise_to(self, partition: TopicPartition, offset: Offset) -> None:
        """Durable when it returns. A lower offset changes nothing."""
        if offset > self.get(partition):
            self._file.replace({**self._file.offsets, partition: offset})

    def note(self, starts: Mapping[TopicPartition, Offset | None]) -> None:
        """Set these, None: it needs no entry; and leave the others, whose logs are not open."""
        others = {key: offset for key, offset in self._file.offsets.items() if key not in starts}
        self._file.replace(others | {key: offset for key, offset in starts.items() if offset is not None})

    def forget(self, partition: TopicPartition) -> None:
        """The log is gone: one of the same name that is made later begins at nothing."""
        self.note({partition: None})
