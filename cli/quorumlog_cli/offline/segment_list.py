"""The segments of a log as their names, sizes and first and last headers show them; records are not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorumlog.records import BATCH_OVERHEAD, BatchHeader, CorruptRecords, parse_header
from quorumlog_cli.offline.batches import log_files
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk
from quorumlog_storage.files.disk import File

_ENTRY_BYTES = {".index": 8, ".timeindex": 12, ".txnindex": 34}


def segments_in(directory: Path) -> list[dict[str, Any]]:
    """Of a partition's directory, in the order of offsets; of a log directory, those of each partition in it.

    end_offset: exclusive; that of the last one is read from its headers. Raises CliError(NOT_FOUND) where there is no
    segment.
    """
    if not directory.exists():
        raise CliError(Exit.NOT_FOUND, f"{directory}: no such file or directory")
    if not directory.is_dir():
        raise CliError(Exit.NOT_FOUND, f"{directory} is no directory", "name that of a partition, or a log directory")
    if log_files(directory):
        return _segments_of(directory)
    found = [one for inner in sorted(directory.iterdir()) if inner.is_dir() for one in _segments_of(inner)]
    if not found:
        raise CliError(Exit.NOT_FOUND, f"{directory} holds no segment", "name a partition's, or a log directory")
    return found


def _segments_of(partition: Path) -> list[dict[str, Any]]:
    paths = log_files(partition)
    bases = [int(path.stem) for path in paths]
    return [_segment(path, bases[number + 1] if number + 1 < len(bases) else None) for number, path in enumerate(paths)]


def _segment(path: Path, successor: int | None) -> dict[str, Any]:
    file = ReadOnlyDisk().open(str(path))
    try:
        size = file.size()
        first = _header_at(file, 0, size)
        largest = None if successor is None else _largest_of_index(path.with_suffix(".timeindex"))
        last, walked = (first, largest) if largest is not None else _walk(file, size)
    finally:
        file.close()
    end = successor if successor is not None else int(path.stem) if last is None else last.next_offset
    return {
        "path": str(path),
        "base_offset": int(path.stem),
        "end_offset": end,
        "bytes": size,
        **{suffix[1:]: _entries(path.with_suffix(suffix), width) for suffix, width in _ENTRY_BYTES.items()},
        "snapshot": _is_there(path.with_suffix(".snapshot")),
        "first_timestamp": None if first is None else first.max_timestamp,
        "largest_timestamp": walked,
    }


def _is_there(path: Path) -> bool:
    return path.exists()


def _entries(path: Path, width: int) -> int | None:
    """None where there is no file."""
    return path.stat().st_size // width if _is_there(path) else None


def _header_at(file: File, position: int, size: int) -> BatchHeader | None:
    """None where no whole batch begins."""
    try:
        header = parse_header(file.pread(position, BATCH_OVERHEAD))
    except CorruptRecords:
        return None
    return header if header.size <= size - position else None


def _largest_of_index(path: Path) -> int | None:
    """A segment that is closed ends its time index with its largest timestamp. None where there is no entry."""
    if not _is_there(path):
        return None
    data = path.read_bytes()[-_ENTRY_BYTES[".timeindex"] :]
    return int.from_bytes(data[:8], "big") if len(data) == _ENTRY_BYTES[".timeindex"] else None


def _walk(file: File, size: int) -> tuple[BatchHeader | None, int | None]:
    """The last header, and the largest timestamp of all; None where there is none."""
    position, last, largest = 0, None, -1
    while position < size and (header := _header_at(file, position, size)) is not None:
        position, last, largest = position + header.size, header, max(largest, header.max_timestamp)
    return last, largest if largest >= 0 else None
