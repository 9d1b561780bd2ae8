"""`promotion-checkpoint`: a future log that holds everything its source held when that took no more appends.

One line in the form of Kafka's text checkpoints: topic, partition, the id of the source's log directory, the exclusive
end offset. The topic stands there because a long name is cut in the name of a `-future` directory.

The mark alone decides nothing. It counts where its source has left: quorumlog_storage/moves/promotion.py, fates.py.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from quorumlog.ids import Offset, Uuid, format_uuid, parse_uuid
from quorumlog_storage.files.atomic import remove_durably, write_atomically
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint, parse_checkpoint, parse_number, render_checkpoint

MARK_NAME = "promotion-checkpoint"


class PromotionMark(NamedTuple):
    """source: id of the log directory that the records came from. end_offset: exclusive."""

    topic: str
    partition: int
    source: Uuid
    end_offset: Offset


def render_mark(mark: PromotionMark) -> bytes:
    return render_checkpoint([f"{mark.topic} {mark.partition} {format_uuid(mark.source)} {mark.end_offset}"])


def parse_mark(path: str, content: bytes) -> PromotionMark:
    """Raises CorruptCheckpoint."""
    lines = list(islice(parse_checkpoint(path, content), 2))
    if len(lines) != 1 or len(lines[0]) != 4 or not lines[0][0]:
        raise CorruptCheckpoint(path, 1, "not one line with a topic, a partition, a directory id and an offset")
    topic, partition, source, end = lines[0]
    try:
        source_id = parse_uuid(source)
    except ValueError as error:
        raise CorruptCheckpoint(path, 3, str(error)) from error
    number, end_offset = parse_number(path, 3, partition), parse_number(path, 3, end)
    if not 0 <= number < 2**31 or end_offset < 0:
        raise CorruptCheckpoint(path, 3, "a negative partition or offset")
    return PromotionMark(topic, number, source_id, end_offset)


def read_mark(disk: Disk, partition_path: str) -> PromotionMark | None:
    """None where there is none. One that cannot be parsed counts as none: the log is then not promoted.

    Raises DiskError.
    """
    path = f"{partition_path}/{MARK_NAME}"
    try:
        return parse_mark(path, disk.read_bytes(path))
    except (FileMissing, CorruptCheckpoint):
        return None


def write_mark(disk: Disk, partition_path: str, mark: PromotionMark) -> None:
    """Durable when it returns. Raises DiskError."""
    write_atomically(disk, f"{partition_path}/{MARK_NAME}", render_mark(mark))


def remove_mark(disk: Disk, partition_path: str) -> None:
    """Durable when it returns, also where there was none. Raises DiskError."""
    path = f"{partition_path}/{MARK_NAME}"
    if disk.exists(path):
        remove_durably(disk, path)
