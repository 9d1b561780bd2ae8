"""Reads the batches of a log file offline: opens nothing for writing, recovers nothing, truncates nothing.

So it can read a running node's files too. It reports damage and goes on reading where that makes sense.
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

MAX_BATCH_BYTES = 1 << 30  # a longer batch means a damaged length field


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """position: bytes from the start of the file. `header.position` is 0, because `data` is the batch alone."""

    position: int
    header: BatchHeader
    data: bytes
    crc_ok: bool

    def records(self) -> list[Record]:
        """Raises CorruptRecords."""
        return decode_batch(self.data, self.header)


@dataclass(frozen=True, slots=True)
class Damage:
    """torn: the file ends inside a batch, as after a crash; the node truncates it at its next start."""

    position: int
    reason: str
    torn: bool = False


def read_batches(path: Path) -> Iterator[FoundBatch | Damage]:
    """Every batch of a `.log` or `.checkpoint` file. Ends with a Damage if the rest cannot be parsed."""
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
    """Segments of one log, in the order of offsets."""
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
