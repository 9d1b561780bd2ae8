"""A partition directory of a stopped broker, as something to copy from. It is only read.

What the offset files of the log directory around it say counts for the partition of this name: the high watermark, the
log start, and how far the cleaner has come. Offsets may be missing inside a segment. Between two segments they may be
missing below the cleaner's point only, because a cleaner may drop the last batches of a segment; above it something was
lost, which is `HoleInSource`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import BATCH_OVERHEAD, BatchHeader, parse_header, verify_crc
from quorumlog_storage.directory.offset_files import HIGH_WATERMARKS, LOG_STARTS, offsets_at
from quorumlog_storage.files.disk import Disk, File, FileMissing, name_of, parent_of
from quorumlog_storage.files.names import LOG_SUFFIX, log_name, parse_directory, parse_segment_name
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint
from quorumlog_storage.foreign.unfinished import is_unfinished

CLEANED = "cleaner-offset-checkpoint"
READ_BYTES = 1 << 20
MAX_BATCH_BYTES = 1 << 30  # a longer one means a damaged length field


class BadSource(Exception):
    """The directory cannot be copied. The message says why, and what to do."""


class HoleInSource(BadSource):
    """Offsets are missing between two segments, and no cleaner took them."""


@dataclass(frozen=True, slots=True)
class Source:
    """bases: of the segments, ascending, at least one. high_watermark: None where no file says it.

    log_start: at least the first base. cleaned: the cleaner has come so far, exclusive; 0: not at all.
    """

    path: str
    topic: str
    index: int
    bases: tuple[Offset, ...]
    high_watermark: Offset | None
    log_start: Offset
    cleaned: Offset

    @property
    def start_offset(self) -> Offset:
        """Where a copy begins: the base of the segment that holds the log start."""
        return max(base for base in self.bases if base <= self.log_start)


def find_source(disk: Disk, path: str) -> Source:
    """Raises BadSource, BadDirectoryName, DiskError."""
    named = parse_directory(name_of(path))
    if named.mark:
        raise BadSource(f"{path} was on its way out ({named.mark}); only a partition in use can be imported")
    try:
        names = disk.list(path)
    except FileMissing as error:
        raise BadSource(f"{path}: no such directory") from error
    parsed = [found for name in names if (found := parse_segment_name(name)) is not None]
    bases = tuple(sorted(base for base, suffix in parsed if suffix == LOG_SUFFIX))
    if not bases:
        raise BadSource(f"{path} holds no segment; give a directory like <topic>-<partition> of a stopped broker")
    key, around = (named.topic, named.partition), parent_of(path)
    start = _offsets(disk, f"{around}/{LOG_STARTS}").get(key, 0)
    return Source(
        path=path,
        topic=named.topic,
        index=named.partition,
        bases=bases,
        high_watermark=_offsets(disk, f"{around}/{HIGH_WATERMARKS}").get(key),
        log_start=max(start, bases[0]),
        cleaned=_offsets(disk, f"{around}/{CLEANED}").get(key, 0),
    )


def batches(disk: Disk, source: Source, from_offset: Offset, end: Offset | None) -> Iterator[tuple[BatchHeader, bytes]]:
    """Every batch that ends above `from_offset` and at or below `end`, in order, with its bytes; checksums verified.

    header.position counts from the start of its file. end: exclusive; None: to the last whole batch; a torn one behind
    it is left out. Raises BadSource for damage before `end`, DiskError.
    """
    previous = source.start_offset
    for number, base in enumerate(source.bases):
        following = source.bases[number + 1] if number + 1 < len(source.bases) else None
        if base < source.start_offset or (following is not None and following <= from_offset):
            previous = max(previous, following or 0)
            continue
        if base > previous and base > source.cleaned:
            raise HoleInSource(
                f"{source.path}: offsets {previous} to {base - 1} are missing between two segments; they were lost "
                "there. Copy from another replica, or import with --accept-gaps"
            )
        for header, data in _of_segment(disk, source, base, is_last=following is None):
            if end is not None and header.next_offset > end:
                return
            if header.base_offset < previous or (following is not None and header.next_offset > following):
                where = f"{source.path}/{log_name(base)} at byte {header.position}"
                raise BadSource(f"{where}: offset {header.base_offset} where {previous} is next; copy another replica")
            previous = header.next_offset
            if previous > from_offset:
                yield header, data


def _of_segment(disk: Disk, source: Source, base: Offset, *, is_last: bool) -> Iterator[tuple[BatchHeader, bytes]]:
    path = f"{source.path}/{log_name(base)}"
    file = disk.open(path)
    try:
        size, position = file.size(), 0
        window, start = b"", 0
        while position < size:
            try:
                if position + BATCH_OVERHEAD > start + len(window):
                    start, window = position, file.pread(position, READ_BYTES)
                header = parse_header(window, position - start)
                if header.size > size - position or header.size > MAX_BATCH_BYTES:
                    raise CorruptRecords(position, f"a batch of {header.size} bytes, {size - position} are left")
                if position + header.size > start + len(window):
                    start, window = position, _read(file, position, max(READ_BYTES, header.size))
                data = window[position - start : position - start + header.size]
                alone = parse_header(data)
                verify_crc(data, alone)
            except CorruptRecords as error:
                if is_last and is_unfinished(file, position, size):
                    return
                raise BadSource(f"{path} at byte {position}: {error.reason}; copy from another replica") from error
            alone.position = position
            yield alone, data
            position += header.size
    finally:
        file.close()


def _read(file: File, position: int, length: int) -> bytes:
    return bytes(file.pread(position, length))


def _offsets(disk: Disk, path: str) -> dict[tuple[str, int], Offset]:
    """Empty if the file is not there or is damaged: then nothing is known, and the batches themselves tell."""
    try:
        return offsets_at(disk, path) or {}
    except CorruptCheckpoint:
        return {}
