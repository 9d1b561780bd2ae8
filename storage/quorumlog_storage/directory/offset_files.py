"""Offset files: one offset for each partition of a log directory, one text file for each kind.

- `recovery-point-offset-checkpoint`: every record before this offset was synced once, so a start after a crash scans
  only the segments from there on. A point must never lie above what is synced.
- `log-start-offset-checkpoint`: where a log starts, if not with its first segment. It is written before any record is
  deleted, so that deleted records stay deleted. A start may be too low, never too high.
- `lost-offset-checkpoint` (ours): a log that was once synced up to this offset, exclusive, was found to end before it.
  The line stays until the controller knows that this replica may lack acknowledged records.
- `replication-offset-checkpoint`: high watermarks. A hint: it may be too low.
- `cleaner-offset-checkpoint`: up to where a compacted log is clean. A hint: it may be too low.

A line names topic and partition, as in Kafka's files, and no topic id. `quorumlog_storage/directory/partition_log.py`
ensures that a topic that was deleted and created again does not find the lines of the old one.

A line is changed by the writer of that partition's log only. The metadata log has a writer of its own, and therefore a
file of its own, beside its segments.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from zlib import crc32

from quorumlog.ids import Offset
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import Disk, FileMissing, name_of
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint, parse_checkpoint, parse_number, render_checkpoint

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
LOST_OFFSETS = "lost-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

CORRUPT_SUFFIX = ".corrupt"  # of a copy of a file that could not be parsed

IF_EMPTY = {
    RECOVERY_POINTS: "logs that were not closed cleanly are scanned from their first segment, which takes longer",
    LOG_STARTS: "a log starts with its first segment, so records that were deleted there can be read again",
    CLEANER_OFFSETS: "compacted logs are cleaned from their start again",
    HIGH_WATERMARKS: "a replica knows no high watermark until its leader or its followers tell it",
}

_log = logging.getLogger("quorumlog.storage")

TopicPartition = tuple[str, int]  # topic name, partition number


class OffsetFile:
    """One offset file. It is read at its first use and written only when an offset changes.

    Not safe for threads: it belongs to one writer, and is first used in that writer's turn, so that a disk error there
    fails the directory like any other.

    A file that cannot be parsed is kept as `<name>.<checksum>.corrupt`, durably and before anything replaces it. Then
    it counts as empty, and an error is logged that says what follows (`IF_EMPTY`): recovery points and high watermarks
    cost time only, log starts bring back records that were deleted inside a first segment. Lost offsets cannot count as
    empty: a replica would take part in elections that lacks acknowledged records. So no log of the directory opens.

    finding: what is damaged, where it is kept and what follows; empty for a file that is whole.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk, self._path = disk, path
        self._offsets: dict[TopicPartition, Offset] | None = None  # as on disk; None: not read yet
        self.finding = ""

    @property
    def offsets(self) -> Mapping[TopicPartition, Offset]:
        """All lines. Raises DiskError."""
        return self._read()

    def load(self) -> None:
        """Read it now; afterwards any thread may `get`. Raises DiskError."""
        self._read()

    def get(self, partition: TopicPartition) -> Offset:
        """0 where there is no line. Raises DiskError."""
        return max(0, self._read().get(partition, 0))

    def update(self, changes: Mapping[TopicPartition, Offset | None]) -> None:
        """Set these lines, remove those that are None, leave all others. Durable when it returns. Raises DiskError."""
        before = self._read()
        if all(before.get(partition) == offset for partition, offset in changes.items()):
            return
        kept = {partition: offset for partition, offset in before.items() if partition not in changes}
        after = kept | {partition: offset for partition, offset in changes.items() if offset is not None}
        write_atomically(self._disk, self._path, render_offsets(after))
        self._offsets = after

    def raise_to(self, partition: TopicPartition, offset: Offset) -> None:
        """`update` unless the line is that high already."""
        if offset > self.get(partition):
            self.update({partition: offset})

    def lower_to(self, partition: TopicPartition, offset: Offset) -> None:
        """`update` unless the line is that low already."""
        if offset < self.get(partition):
            self.update({partition: offset})

    def _read(self) -> dict[TopicPartition, Offset]:
        if self._offsets is None:
            try:
                content = self._disk.read_bytes(self._path)
            except FileMissing:
                content = b""
            try:
                self._offsets = parse_offsets(self._path, content)
            except CorruptCheckpoint as error:
                self._keep(content, error)
                self._offsets = {}
        return self._offsets

    def _keep(self, content: bytes, error: CorruptCheckpoint) -> None:
        """Raises CorruptCheckpoint for a file that must not count as empty; DiskError."""
        name = name_of(self._path)
        if name not in IF_EMPTY:
            raise error
        copy = f"{self._path}.{crc32(content):08x}{CORRUPT_SUFFIX}"
        write_atomically(self._disk, copy, content)
        self.finding = f"{error}. It is kept as {copy}, and counts as empty: {IF_EMPTY[name]}"
        _log.error("%s", self.finding)


def render_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    """The content of an offset file, sorted."""
    return render_checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def offsets_at(disk: Disk, path: str) -> dict[TopicPartition, Offset] | None:
    """What the file says now; None where there is none. Nothing is changed. Raises CorruptCheckpoint, DiskError."""
    try:
        return parse_offsets(path, disk.read_bytes(path))
    except FileMissing:
        return None


def parse_offsets(path: str, content: bytes) -> dict[TopicPartition, Offset]:
    """Raises CorruptCheckpoint."""
    offsets: dict[TopicPartition, Offset] = {}
    for line, words in enumerate(parse_checkpoint(path, content), start=3):
        if len(words) != 3 or not words[0]:
            raise CorruptCheckpoint(path, line, "not a topic, a partition and an offset")
        key = (words[0], parse_number(path, line, words[1]))
        if key[1] < 0 or key in offsets:
            raise CorruptCheckpoint(path, line, f"partition {key[0]}-{key[1]} is there twice or is negative")
        offsets[key] = parse_number(path, line, words[2])
    return offsets
