"""The entries of an offset index file, checked against its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from cli.offline.batches import FoundBatch, read_batches
from quorumlog.ids import Offset

_ENTRY = Struct(">ii")


class Entry(NamedTuple):
    """offset: absolute, the last of the batch at `position`. problem: "" if log and index agree."""

    offset: Offset
    position: int
    problem: str


def read_index(path: Path) -> Iterator[Entry]:
    """Raises ValueError if the file is not a whole number of entries, or its name is not its base offset."""
    content = path.read_bytes()
    if len(content) % _ENTRY.size:
        raise ValueError(f"{path}: {len(content)} bytes are not a whole number of {_ENTRY.size}-byte entries")
    if not path.stem.isdigit():
        raise ValueError(f"{path}: the name of an index must be the 20 digits of its base offset")
    ends = _ends(path.with_suffix(".log"))
    before = (-1, -1)
    for relative, position in _ENTRY.iter_unpack(content):
        offset = int(path.stem) + relative
        problem = _problem(offset, position, ends, increasing=relative > before[0] and position > before[1])
        yield Entry(offset, position, problem)
        before = (relative, position)


def _ends(log: Path) -> dict[int, Offset] | None:
    """Last offset of every batch, by position; None if there is no log."""
    if not log.is_file():
        return None
    return {found.position: found.header.last_offset for found in read_batches(log) if isinstance(found, FoundBatch)}


def _problem(offset: Offset, position: int, ends: dict[int, Offset] | None, *, increasing: bool) -> str:
    if not increasing:
        return "does not increase"
    if ends is None:
        return ""
    if position not in ends:
        return "no batch begins at that position"
    return "" if ends[position] == offset else f"the batch at that position ends at offset {ends[position]}"
