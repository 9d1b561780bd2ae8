"""Reads the batches of a log file offline: opens nothing for writing, recovers nothing, truncates nothing.

So it can read a running node's files too. It reports damage and goes on behind it where a whole batch follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quorumlog_storage.audit.batches import Damage, FoundBatch
from quorumlog_storage.audit.batches import read_batches as batches_of
from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk

__all__ = ["Damage", "FoundBatch", "log_files", "read_batches"]


def read_batches(path: Path) -> Iterator[FoundBatch | Damage]:
    """Every batch of a `.log` or `.checkpoint` file, and what is none. Raises FileMissing, DiskError."""
    file = ReadOnlyDisk().open(str(path))
    try:
        yield from batches_of(file, file.size())
    finally:
        file.close()


def log_files(directory: Path) -> list[Path]:
    """Segments of one log, in the order of offsets."""
    return sorted(directory.glob("[0-9]" * 20 + ".log"))
