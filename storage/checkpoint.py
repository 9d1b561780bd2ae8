"""Offsets of all partitions of a directory, in one file each: recovery points and high watermarks (FORMATS 4.6).

`recovery-point-offset-checkpoint`: everything before this offset was synced once, so an unclean start reads only what
follows. It must never be too high: it is lowered on disk before a log is truncated below it, because the bytes written
there next are not synced yet. `replication-offset-checkpoint`: high watermarks, a hint that may be too low.

Whoever writes a log keeps its points: those of the partitions lie in the log directory, that of the metadata log, which
has a writer of its own, in a file of the same name beside its segments.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.ids import Offset
from storage.atomic import write_atomically
from storage.disk import Disk, FileMissing, name_of
from storage.names import parse_directory
from storage.text_checkpoint import CorruptCheckpoint, parse_checkpoint, parse_number, render_checkpoint

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"

TopicPartition = tuple[str, int]  # topic name, partition number


def render_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    """The content of a checkpoint, sorted."""
    return render_checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


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


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, Offset]:
    """Empty where there is no file. Raises CorruptCheckpoint, DiskError."""
    try:
        return parse_offsets(path, disk.read_bytes(path))
    except FileMissing:
        return {}


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, Offset]) -> None:
    """Replace the file. Durable when it returns."""
    write_atomically(disk, path, render_offsets(offsets))


class OffsetsFile:
    """What a file of offsets says, read at its first use and written only when that changes. Used by one writer only.

    An unreadable text counts as empty.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk, self._path = disk, path
        self._on_disk: Mapping[TopicPartition, Offset] | None = None

    @property
    def offsets(self) -> Mapping[TopicPartition, Offset]:
        if self._on_disk is None:
            try:
                self._on_disk = read_offsets(self._disk, self._path)
            except CorruptCheckpoint:
                self._on_disk = {}
        return self._on_disk

    def get(self, partition: TopicPartition) -> Offset:
        """0 where none is known."""
        return max(0, self.offsets.get(partition, 0))

    def replace(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        """All of them; durable when it returns."""
        if offsets != self.offsets:
            write_offsets(self._disk, self._path, offsets)
            self._on_disk = dict(offsets)


class RecoveryPoints:
    """The recovery points of one writer's logs and what of them is on disk. Used by that writer only.

    directory: where their file lies. It is read at its first use, in the writer's turn: if the disk fails there, the
    directory is offline as after any other failure.

    An unreadable text counts as empty: every log is then recovered from its start, which is slow and right.
    """

    def __init__(self, disk: Disk, directory: str) -> None:
        self._file = OffsetsFile(disk, f"{directory}/{RECOVERY_POINTS}")

    def get(self, partition: TopicPartition) -> Offset:
        """0 where none is known."""
        return self._file.get(partition)

    def write(self, points: Mapping[TopicPartition, Offset]) -> None:
        """Replace all points by these: the synced ends of the directory's logs."""
        self._file.replace(points)

    def note(self, points: Mapping[TopicPartition, Offset]) -> None:
        """Set these points and leave the others, which somebody else keeps."""
        self.write({**self._file.offsets, **points})

    def forget(self, partition: TopicPartition) -> None:
        """The log is gone: one of the same name that is made later begins at nothing."""
        self.write({key: offset for key, offset in self._file.offsets.items() if key != partition})

    def lower(self, log_path: str, offset: Offset) -> None:
        """Before the log in `log_path` is truncated to `offset`: no point on disk may be above it."""
        name = parse_directory(name_of(log_path))
        key = (name.topic, name.partition)
        if self._file.offsets.get(key, 0) > offset:
            self.write({**self._file.offsets, key: offset})
