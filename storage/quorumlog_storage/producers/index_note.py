"""`transaction-index-checkpoint`: how long the transaction index of each segment of a log is, and its checksum.

Most segments have no transaction index, and an index has no checksum. So a lost or damaged one looks like
a segment without aborted transactions, or with others, and a read_committed consumer would be given aborted records.
This note, a text checkpoint of our own, tells the difference. Kafka ignores the file.

The note is a hint, too: where it and an index disagree, the index is made again from the log. A segment that it does
not name has no aborted transaction, or another software wrote it. A log that had transactions and has no note at all
comes from elsewhere: all its indexes are compared with it at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.ids import Offset
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint, parse_checkpoint, parse_number, render_checkpoint

NAME = "transaction-index-checkpoint"

Fingerprint = tuple[int, int]  # entries, CRC-32C of them all


def read_note(disk: Disk, path: str) -> dict[Offset, Fingerprint] | None:
    """By base offset of the segment. None if there is no note in directory `path`, or if it is damaged."""
    file = f"{path}/{NAME}"
    noted: dict[Offset, Fingerprint] = {}
    try:
        for line, words in enumerate(parse_checkpoint(file, disk.read_bytes(file)), 3):
            if len(words) != 3:
                raise CorruptCheckpoint(file, line, f"{len(words)} numbers")
            base, entries, checksum = (parse_number(file, line, word) for word in words)
            noted[base] = entries, checksum
    except (FileMissing, CorruptCheckpoint):
        return None
    return noted


def write_note(disk: Disk, path: str, noted: Mapping[Offset, Fingerprint]) -> None:
    """Durable when it returns. Raises DiskError."""
    lines = [f"{base} {entries} {checksum}" for base, (entries, checksum) in sorted(noted.items())]
    write_atomically(disk, f"{path}/{NAME}", render_checkpoint(lines))
