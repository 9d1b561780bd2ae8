"""Batches of a log file, read without the log: nothing is opened for writing, recovered or cut.

So a running node's files may be read too. What is wrong is found and told; reading goes on where that has a meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from quorumlog.records import (
    BATCH_OVERHEAD,
    BatchHeader,
    CorruptRecords,
    Record,
    decode_batch,
    parse_header,
    verify_crc,
)

MAX_BATCH_BYTES = 1 << 30  # a longer one is a damaged length, not a batch


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """position: bytes from the start of the file; `header.position` is 0, since `data` is the batch alone."""

    position: int
    header: BatchHeader
    data: bytes
    crc_ok: bool

    def records(self) -> list[Record]:
        """Raises CorruptRecords."""
        return decode_batch(self.data, self.header)


@dataclass(frozen=True, slots=True)
class Damage:
    """torn: the file ends inside a batch, which is what a crash leaves, and what the node cuts at its next start."""

    position: int
    reason: str
    torn: bool = False


def read_batches(path: Path) -> Iterator[FoundBatch | Damage]:
    """Every batch of a `.log` or `.checkpoint` file; ends with a Damage where the rest cannot be understood."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        position = 0
        while position < size:
            found = _read_one(file, position, size)
            yield found
            if isinstance(found, Damage):
                return
            position += found.header.size


def log_files(directory: Path) -> list[Path]:
    """Segments of one log, in the order of their offsets."""
    return sorted(directory.glob("[0-9]" * 20 + ".log"))


def _read_one(file: BinaryIO, position: int, size: int) -> FoundBatch | Damage:
    file.seek(position)
    head = file.read(BATCH_OVERHEAD)
    if len(head) < BATCH_OVERHEAD:
        return Damage(position, f"{size - position} bytes are left, fewer than a batch header", torn=True)
    try:
        header = parse_header(head)
    except CorruptRecords as error:
        return Damage(position, error.reason)
    left = size - position
    if header.size > left:
        return Damage(position, f"a batch of {header.size} bytes, {left} are left", torn=header.size <= MAX_BATCH_BYTES)
    data = head + file.read(header.size - BATCH_OVERHEAD)
    return FoundBatch(position, header, data, _crc_ok(data, header))


def _crc_ok(data: bytes, header: BatchHeader) -> bool:
    try:
        verify_crc(data, header)
    except CorruptRecords:
        return False
    return True
