"""Opening a log: which files belong to it, where it ends, and what has to be repaired.

Passes, in order:

1. An interrupted compaction is finished or dropped (quorumlog_storage/recovery/swap_files.py). Leftovers of other
   interrupted work are removed, and caches without a log file. Segments before the log's start leave, as they would
   have without the crash; so no hole between them is taken for a loss.
2. The epochs are read from their checkpoint.
3. The segments are split into those that are trusted and those that are scanned, by the rules below.
4. The scan finds where the log ends (quorumlog_storage/recovery/segment_scan.py). What follows is set aside
   (quorumlog_storage/recovery/cut_files.py). What stays has to be made durable: it may have been in memory only, if a
   process was killed. Where nothing was cut, that is left to the log's first sync, so that many logs of a directory can
   share it (`left_to_sync`).
5. The epochs are cut to the log's range: a crash may have kept older ones, or newer ones, than its records.
6. The producers are read from their newest snapshot and the records behind it
   (quorumlog_storage/producers/log_producers.py). A scan notes them on its way, so that nothing is read twice
   (quorumlog_storage/producers/replay.py).

Which segments are trusted:

1. After a clean stop: all. Otherwise: those before the one that holds the recovery point, for everything before the
   recovery point was synced once. A durable log keeps all but its last segment synced
   (quorumlog_storage/log/log_append.py), so there even a recovery point that is wrong by accident hides no damage.
2. None, if the checkpoint of the epochs is missing: every record has an epoch, so the log has to be read. A log that
   was closed cleanly and is empty needs none. None, in a directory that failed and comes back while the node runs:
   nothing that was known of it counts.
3. None, if the log turns out to end before its recovery point. Records that were synced are gone, or the point is
   another log's: either way it is ignored, and all segments are scanned. A clean stop is then ignored as well.
4. Only those before the first one that does not end where the next one begins. That one is scanned. If it still does
   not meet the next one, there is a hole, and the log ends before it.

Records of another version are never cut: opening raises UnknownFormat.

`left_to_sync` tells what a log that recovery found whole may have in memory only: bytes and names that its first sync
has to cover. Pure.

A process that was killed may have written and renamed what it did not sync. The next one finds all of it, and must not
build on it before it is on the disk. How much that is, follows from the recovery point, which is noted only for what is
synced, names included:

1. Segments that end at or before the point are on the disk.
2. The names of the log's files are on the disk where the point lies behind the start of the last segment. At its start
   they may not be: the segment may have been made after the point was noted.
3. So a log that ends at its point, inside its last segment, needs no sync. Nor can a cut of it be in memory only: a cut
   lowers the point to the start of its segment first, and the point rises again only after the cut is durable
   (quorumlog_storage/directory/checkpointed_log.py).

Only for logs from which nothing was cut. A cut has an order of its own (`_cut`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from quorumlog.ids import Offset
from quorumlog_storage.files.atomic import TEMPORARY_SUFFIX, write_atomically
from quorumlog_storage.files.disk import Disk, FileMissing, parent_of
from quorumlog_storage.files.names import CLEANED_SUFFIX, DELETED_SUFFIX, LOG_SUFFIX, parse_segment_name
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint
from quorumlog_storage.producers.log_producers import LogProducers
from quorumlog_storage.producers.replay import ScannedProducers
from quorumlog_storage.recovery.cut_files import keep_segment, keep_tail
from quorumlog_storage.recovery.segment_scan import Scan
from quorumlog_storage.recovery.swap_files import finish_swaps
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME, EpochStart, LeaderEpochCache
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.offset_index import MAX_RELATIVE_OFFSET
from quorumlog_storage.segment.retired import Retired, retire
from quorumlog_storage.segment.segment import Segment


class ScanProgress:
    """What is left to verify: segments, and their bytes. 0 before the recovery has begun, and once it has ended.

    Written by the thread that opens the log, read by any other.
    """

    __slots__ = ("bytes_left", "segments_left")

    def __init__(self) -> None:
        self.segments_left = 0
        self.bytes_left = 0

    def begin(self, segments: int, size_bytes: int) -> None:
        self.segments_left, self.bytes_left = segments, size_bytes

    def segment_done(self, size_bytes: int) -> None:
        self.segments_left -= 1
        self.bytes_left -= size_bytes

    def end(self) -> None:
        """Also where the log turned out to end earlier."""
        self.begin(0, 0)


@dataclass(frozen=True, slots=True)
class LeftToSync:
    """segments: whose bytes may be in memory only, in order. names: also those of the log's files.

    synced_end: exclusive; what is before it is on the disk. None: all is.
    """

    segments: tuple[Segment, ...] = ()
    names: bool = False
    synced_end: Offset | None = None

    def __bool__(self) -> bool:
        return self.names or bool(self.segments)


NOTHING = LeftToSync()


def left_to_sync(segments: Sequence[Segment], end_offset: Offset, recovery_point: Offset) -> LeftToSync:
    """Of a log with these segments, all of them, and this end, exclusive; both are on or after the recovery point.

    recovery_point: 0 where nothing that was noted counts.
    """
    assert recovery_point <= end_offset, f"the log ends at {end_offset}, before its recovery point {recovery_point}"
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    behind = tuple(segment for segment, end in zip(segments, ends, strict=True) if end > recovery_point)
    names = segments[-1].base_offset >= recovery_point
    if not behind and not names:
        return NOTHING
    return LeftToSync(behind or (segments[-1],), names, max(recovery_point, segments[0].base_offset))


_LEFTOVERS = (TEMPORARY_SUFFIX, DELETED_SUFFIX, CLEANED_SUFFIX)  # of interrupted work; never needed


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
    """A log as its files are after recovery. segments: at least one, in order. producers: None if not tracked.

    saved_epochs: as the checkpoint has them. left: what may be in memory only; everything else is on disk.
    """

    segments: tuple[Segment, ...]
    epochs: LeaderEpochCache
    end_offset: Offset
    recovery: RecoveryReport
    producers: LogProducers | None = None
    saved_epochs: tuple[EpochStart, ...] = ()
    left: LeftToSync = NOTHING


def load(
    disk: Disk,
    path: str,
    config: LogConfig,
    recovery_point: Offset,
    clean: bool,
    log_start: Offset = 0,
    retired: Retired | None = None,
    progress: ScanProgress | None = None,
    whole: bool = False,
) -> LoadedLog:
    """See `Log.open`."""
    found = _find_segments(disk, path, config, retired)
    number = max(0, bisect_right([segment.base_offset for segment in found], log_start) - 1)
    before, segments = found[:number], found[number:]
    scanned = ScannedProducers(disk, path, before) if config.remembers_producers else None
    watch = progress or ScanProgress()
    loaded = _load_records(disk, path, segments, config, recovery_point, clean, watch, whole, scanned)
    if config.remembers_producers:
        unsynced_from = None if clean and not whole else recovery_point
        producers = LogProducers.load(
            disk, path, (*before, *loaded.segments), loaded.end_offset, scanned, unsynced_from=unsynced_from
        )
        if before:
            producers.start_at(loaded.segments[0].base_offset, loaded.end_offset)
        loaded = replace(loaded, producers=producers)
    if before:
        retire(before, retired, config.delete_delay_ms, _nothing)
        disk.sync_directory(path)
    return loaded


def _load_records(
    disk: Disk,
    path: str,
    segments: list[Segment],
    config: LogConfig,
    recovery_point: Offset,
    clean: bool,
    progress: ScanProgress,
    whole: bool,
    scanned: ScannedProducers | None,
) -> LoadedLog:
    if not segments:
        return _create(disk, path, config, recovery_point)
    epochs = _read_epochs(disk, path)
    before = epochs.entries
    loaded = _recover(disk, path, segments, epochs, recovery_point, clean, progress, whole, scanned)
    epochs.truncate_from_start(segments[0].base_offset)
    epochs.truncate_from_end(loaded.end_offset)
    if epochs.is_told_by(before, loaded.end_offset):
        return replace(loaded, saved_epochs=before)
    write_atomically(disk, f"{path}/{CHECKPOINT_NAME}", epochs.render())
    return replace(loaded, saved_epochs=epochs.entries)


def _nothing() -> None:
    """The names are synced right here."""


# --- passes 1 and 2: files ---


def _find_segments(disk: Disk, path: str, config: LogConfig, retired: Retired | None) -> list[Segment]:
    """A segment for every `.log` file. Files with other names are left alone."""
    try:
        names = disk.list(path)
    except FileMissing:
        disk.make_directory(path)
        disk.sync_directory(parent_of(path))
        return []
    if finish_swaps(disk, path, names, config.index_interval_bytes):
        names = disk.list(path)
    parsed = {name: found for name in names if (found := parse_segment_name(name)) is not None}
    bases = [base for base, suffix in parsed.values() if suffix == LOG_SUFFIX]
    with_log = set(bases)
    for name in names:
        is_orphan = name in parsed and parsed[name][0] not in with_log
        if retired is not None and name.endswith(LOG_SUFFIX + DELETED_SUFFIX):
            retired.add_leftover(f"{path}/{name}")
        elif is_orphan or name.endswith(_LEFTOVERS):
            disk.unlink(f"{path}/{name}")
    return [Segment(disk, path, base, config.index_interval_bytes) for base in bases]


def _create(disk: Disk, path: str, config: LogConfig, recovery_point: Offset) -> LoadedLog:
    segment = Segment(disk, path, 0, config.index_interval_bytes)
    segment.create()
    if config.preallocate:
        segment.log.reserve_room(config.segment_bytes)
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
    disk: Disk,
    path: str,
    segments: list[Segment],
    epochs: LeaderEpochCache,
    recovery_point: Offset,
    clean: bool,
    progress: ScanProgress,
    whole: bool,
    scanned: ScannedProducers | None,
) -> LoadedLog:
    told = epochs.entries
    has_epochs = bool(told) or (clean and _is_empty(segments))
    first = _first_scanned(segments, recovery_point, clean) if has_epochs and not whole else 0
    if first == len(segments):
        end_offset = segments[-1].end_offset()
        if end_offset >= recovery_point:
            return LoadedLog(tuple(segments), epochs, end_offset, RecoveryReport(end_offset=end_offset))
        first = 0
    scan = _scan_from(first, segments, epochs, progress, scanned, told)
    if scan.end_offset < recovery_point and first > 0:
        scan = _scan_from(0, segments, epochs, progress, scanned, told)
    progress.end()
    loaded = _cut(disk, path, segments, scan, epochs, recovery_point)
    if loaded.recovery.is_damage:
        return loaded
    return replace(loaded, left=left_to_sync(loaded.segments, loaded.end_offset, 0 if whole else recovery_point))


def _is_empty(segments: list[Segment]) -> bool:
    return len(segments) == 1 and segments[0].log.file.size() == 0


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
        segment.indexes.mend()
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


def _scan_from(
    first: int,
    segments: list[Segment],
    epochs: LeaderEpochCache,
    progress: ScanProgress,
    producers: ScannedProducers | None,
    told: tuple[EpochStart, ...],
) -> _Scanned:
    """Scan the segments from a number on. Their epochs are forgotten first and noted again from the batches.

    told: the epochs of the checkpoint, for what compaction has taken out of the batches.
    """
    suspect = segments[first:]
    for segment in suspect:
        segment.log.file.drop_cached()  # the process before may have ended because a sync failed
    sizes = [segment.log.file.size() for segment in suspect]
    progress.begin(len(suspect), sum(sizes))
    epochs.truncate_from_end(suspect[0].base_offset)
    if producers is not None:
        producers.begin(segments[:first], suspect[0].base_offset)
    scan, kept, has_hole = Scan(epochs, suspect[0].base_offset, producers, told), first, False
    for number, segment in enumerate(suspect, first):
        has_hole = segment.base_offset != scan.next_offset and not scan.reason
        if has_hole:
            scan.reason = f"{segment.log.path} begins where offset {scan.next_offset} should follow"
        if scan.reason:
            break
        scan.segment(segment, segments[number + 1].base_offset if number + 1 < len(segments) else None)
        kept = number + 1
        progress.segment_done(sizes[number - first])
    return _Scanned(first, kept, sizes, scan.next_offset, scan.reason, has_hole)


def _cut(
    disk: Disk, path: str, segments: list[Segment], scan: _Scanned, epochs: LeaderEpochCache, recovery_point: Offset
) -> LoadedLog:
    """Where nothing has to be cut, what was scanned is not durable yet. Otherwise it is."""
    scanned, dropped = segments[scan.first : scan.kept], segments[scan.kept :]
    is_lost = scan.end_offset < recovery_point
    is_whole = not dropped and not is_lost and all(segment.size == segment.log.file.size() for segment in scanned)
    kept = () if is_whole else _repair(disk, path, scanned, dropped)
    _replace_caches(scanned, are_there=is_whole)
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
    return tuple(reversed(aside))


def _replace_caches(scanned: list[Segment], *, are_there: bool) -> None:
    """The old ones may not be what the scan has made. Not durable: a removed one that comes back is a hint like any."""
    if are_there:
        for segment in scanned:
            segment.remove_caches()
    for segment in scanned[:-1]:
        segment.flush_caches()
