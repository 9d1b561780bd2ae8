"""Opening a log: which files belong to it, where it ends, and what has to be repaired.

Passes, in order:

1. Leftovers of interrupted work are removed, and caches without a log file.
2. The epochs are read from their checkpoint.
3. The segments are split into those that are trusted and those that are scanned, by the rules below.
4. The scan finds where the log ends (storage/segment_scan.py). What follows is set aside (storage/cut_files.py), what
   stays is made durable: it may have been in memory only, if a process was killed.
5. The epochs are cut to the log's range: a crash may have kept older ones, or newer ones, than its records.
6. The producers are read from their newest snapshot and the records behind it (storage/log_producers.py).

Which segments are trusted:

1. After a clean stop: all. Otherwise: those before the one that holds the recovery point, for everything before the
   recovery point was synced once. A durable log keeps all but its last segment synced (storage/log_append.py), so there
   even a recovery point that is wrong by accident hides no damage.
2. None, if the checkpoint of the epochs is missing: every record has an epoch, so the log has to be read.
3. None, if the log turns out to end before its recovery point. Records that were synced are gone, or the point is
   another log's: either way it is ignored, and all segments are scanned. A clean stop is then ignored as well.
4. Only those before the first one that does not end where the next one begins. That one is scanned. If it still does
   not meet the next one, there is a hole, and the log ends before it.

Records of another version are never cut: opening raises UnknownFormat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quorumlog.ids import Offset
from storage.atomic import TEMPORARY_SUFFIX, write_atomically
from storage.cut_files import keep_segment, keep_tail
from storage.disk import Disk, FileMissing, parent_of
from storage.epochs import CHECKPOINT_NAME, LeaderEpochCache
from storage.log_config import LogConfig
from storage.log_file import CorruptBatch
from storage.log_producers import LogProducers
from storage.names import LOG_SUFFIX, parse_segment_name
from storage.offset_index import MAX_RELATIVE_OFFSET
from storage.segment import Segment
from storage.segment_scan import Scan
from storage.text_checkpoint import CorruptCheckpoint

_LEFTOVERS = (TEMPORARY_SUFFIX, ".deleted", ".cleaned")  # of interrupted work; never needed


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What opening a log found.

    scanned_bytes: verified by checksum. cut_bytes: taken from the log's end. kept: the files that hold them now.
    recovery_point: as it was noted before; everything before it was synced once.
    """

    scanned_bytes: int = 0
    cut_bytes: int = 0
    kept: tuple[str, ...] = ()
    end_offset: Offset = 0  # of the log, exclusive
    recovery_point: Offset = 0
    reason: str = ""  # why the log ends where it ends, if something was cut
    has_hole: bool = False  # it ends there because the next segment begins at another offset
    lost_below_recovery_point: bool = False  # the log ends before its recovery point, which was ignored

    @property
    def is_damage(self) -> bool:
        """Something was cut, or is not there any more."""
        return self.cut_bytes > 0 or self.lost_below_recovery_point

    def describe(self, path: str, lost_before: Offset) -> str:
        """For people. path: of the log. lost_before: see `PartitionLog`."""
        text = f"{path} ends at offset {self.end_offset}"
        text += f": {self.reason or 'an earlier start found it shorter than it had been'}"
        if self.kept:
            text += f"; {self.cut_bytes} bytes were cut and are kept in {', '.join(self.kept)}"
        if lost_before:
            text += f"; records up to offset {lost_before} were on disk once"
        return text


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A log as its files are after recovery. segments: at least one, in order. producers: None if not tracked."""

    segments: tuple[Segment, ...]
    epochs: LeaderEpochCache
    end_offset: Offset
    recovery: RecoveryReport
    producers: LogProducers | None = None


def load(disk: Disk, path: str, config: LogConfig, recovery_point: Offset, clean: bool) -> LoadedLog:
    """See `Log.open`."""
    loaded = _load_records(disk, path, config, recovery_point, clean)
    if not config.remembers_producers:
        return loaded
    return replace(loaded, producers=LogProducers.load(disk, path, loaded.segments, loaded.end_offset))


def _load_records(disk: Disk, path: str, config: LogConfig, recovery_point: Offset, clean: bool) -> LoadedLog:
    segments = _find_segments(disk, path, config)
    if not segments:
        return _create(disk, path, config, recovery_point)
    epochs = _read_epochs(disk, path)
    before = epochs.entries
    loaded = _recover(disk, path, segments, epochs, recovery_point, clean)
    epochs.truncate_from_start(segments[0].base_offset)
    epochs.truncate_from_end(loaded.end_offset)
    if epochs.entries != before:
        write_atomically(disk, f"{path}/{CHECKPOINT_NAME}", epochs.render())
    return loaded


# --- passes 1 and 2: files ---


def _find_segments(disk: Disk, path: str, config: LogConfig) -> list[Segment]:
    """A segment for every `.log` file. Files with other names are left alone."""
    try:
        names = disk.list(path)
    except FileMissing:
        disk.make_directory(path)
        disk.sync_directory(parent_of(path))
        return []
    parsed = {name: found for name in names if (found := parse_segment_name(name)) is not None}
    bases = [base for base, suffix in parsed.values() if suffix == LOG_SUFFIX]
    for name in names:
        is_orphan = name in parsed and parsed[name][0] not in bases
        if is_orphan or name.endswith(_LEFTOVERS):
            disk.unlink(f"{path}/{name}")
    return [Segment(disk, path, base, config.index_interval_bytes) for base in bases]


def _create(disk: Disk, path: str, config: LogConfig, recovery_point: Offset) -> LoadedLog:
    segment = Segment(disk, path, 0, config.index_interval_bytes)
    segment.create()
    disk.sync_directory(path)
    report = RecoveryReport(
        recovery_point=recovery_point,
        reason="no segment is there" if recovery_point else "",
        lost_below_recovery_point=recovery_point > 0,
    )
    return LoadedLog((segment,), LeaderEpochCache(), 0, report)


def _read_epochs(disk: Disk, path: str) -> LeaderEpochCache:
    """Empty if the checkpoint is missing, unreadable or empty."""
    checkpoint = f"{path}/{CHECKPOINT_NAME}"
    try:
        return LeaderEpochCache.parse(checkpoint, disk.read_bytes(checkpoint))
    except (FileMissing, CorruptCheckpoint):
        return LeaderEpochCache()


# --- pass 3: which segments are trusted ---


def _recover(
    disk: Disk, path: str, segments: list[Segment], epochs: LeaderEpochCache, recovery_point: Offset, clean: bool
) -> LoadedLog:
    first = _first_scanned(segments, recovery_point, clean) if epochs.entries else 0
    if first == len(segments):
        end_offset = segments[-1].end_offset()
        if end_offset >= recovery_point:
            return LoadedLog(tuple(segments), epochs, end_offset, RecoveryReport(end_offset=end_offset))
        first = 0
    scan = _scan_from(first, segments, epochs)
    if scan.end_offset < recovery_point and first > 0:
        scan = _scan_from(0, segments, epochs)
    return _cut(disk, path, segments, scan, epochs, recovery_point)


def _first_scanned(segments: list[Segment], recovery_point: Offset, clean: bool) -> int:
    """Number of the first segment to scan; len(segments) if all are trusted."""
    if clean:
        first = len(segments)
    else:
        first = max([n for n, segment in enumerate(segments) if segment.base_offset <= recovery_point], default=0)
    for number, segment in enumerate(segments[:first]):
        successor = segments[number + 1].base_offset if number + 1 < len(segments) else None
        if not _ends_at(segment, successor):
            return number
    return first


def _ends_at(segment: Segment, successor: Offset | None) -> bool:
    """Whether a segment ends where the next one begins; for the last one, whether a segment can end there."""
    try:
        end = segment.end_offset()
    except CorruptBatch:
        return False
    return end == successor if successor is not None else 0 <= end - segment.base_offset <= MAX_RELATIVE_OFFSET + 1


# --- pass 4: where the log ends ---


@dataclass(frozen=True, slots=True)
class _Scanned:
    """first, kept: segments [first, kept) were scanned and stay, those after them do not."""

    first: int
    kept: int
    sizes: list[int]  # of the segments from `first` on, before anything was cut
    end_offset: Offset
    reason: str
    has_hole: bool


def _scan_from(first: int, segments: list[Segment], epochs: LeaderEpochCache) -> _Scanned:
    """Scan the segments from a number on. Their epochs are forgotten first and noted again from the batches."""
    suspect = segments[first:]
    for segment in suspect:
        segment.log.file.drop_cached()  # the process before may have ended because a sync failed
    sizes = [segment.log.file.size() for segment in suspect]
    epochs.truncate_from_end(suspect[0].base_offset)
    scan, kept, has_hole = Scan(epochs, suspect[0].base_offset), first, False
    for number, segment in enumerate(suspect, first):
        has_hole = segment.base_offset != scan.next_offset and not scan.reason
        if has_hole:
            scan.reason = f"{segment.log.path} begins where offset {scan.next_offset} should follow"
        if scan.reason:
            break
        scan.segment(segment, segments[number + 1].base_offset if number + 1 < len(segments) else None)
        kept = number + 1
    return _Scanned(first, kept, sizes, scan.next_offset, scan.reason, has_hole)


def _cut(
    disk: Disk, path: str, segments: list[Segment], scan: _Scanned, epochs: LeaderEpochCache, recovery_point: Offset
) -> LoadedLog:
    scanned, dropped = segments[scan.first : scan.kept], segments[scan.kept :]
    is_lost = scan.end_offset < recovery_point
    kept = _repair(disk, path, scanned, dropped)
    report = RecoveryReport(
        scanned_bytes=sum(scan.sizes[: len(scanned)]),
        cut_bytes=sum(scan.sizes) - sum(segment.size for segment in scanned),
        kept=kept,
        end_offset=scan.end_offset,
        recovery_point=recovery_point,
        reason=scan.reason or (f"{path} ends before its recovery point" if is_lost else ""),
        has_hole=scan.has_hole,
        lost_below_recovery_point=is_lost,
    )
    return LoadedLog(tuple(segments[: scan.kept]), epochs, scan.end_offset, report)


def _repair(disk: Disk, directory: str, kept: list[Segment], dropped: list[Segment]) -> tuple[str, ...]:
    """Set aside what follows the log's end, then cut it off. Returns the paths of what was set aside, in order.

    Names first, the last one first, then bytes: a crash in between leaves a prefix of the log for the next try.
    """
    aside = [path for segment in reversed(dropped) if (path := keep_segment(disk, segment)) is not None]
    aside += [keep_tail(disk, segment.log) for segment in kept[-1:] if segment.size < segment.log.file.size()]
    for segment in kept:
        segment.remove_caches()
    disk.sync_directory(directory)
    for segment in kept:
        segment.log.cut()
        segment.log.flush()
    for segment in kept[:-1]:
        segment.flush_caches()
    return tuple(reversed(aside))
