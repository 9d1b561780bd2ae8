"""Opening a log directory: which files count, how far the log goes, and what has to be repaired first.

Passes, in order: leftovers of interrupted work go; segments by name; epochs from their checkpoint; then either the last
segment is trusted up to its last batch (clean), or every segment from the recovery point on is scanned, the log cut at
the first fault, and all that is kept made durable, for it may have been only in memory (a killed process); last, what
the log says of producers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quorumlog.ids import Offset
from quorumlog.records.batch import MAX_OFFSET
from storage.atomic import TEMPORARY_SUFFIX, write_atomically
from storage.disk import Disk, FileMissing, parent_of
from storage.epochs import CHECKPOINT_NAME, LeaderEpochCache
from storage.log_config import LogConfig
from storage.log_producers import LogProducers
from storage.names import INDEX_SUFFIX, LOG_SUFFIX, parse_segment_name
from storage.offset_index import MAX_RELATIVE_OFFSET
from storage.recovery import RecoveryReport, Scan, ScanRules
from storage.segment import CorruptBatch, Segment
from storage.text_checkpoint import CorruptCheckpoint

_LEFTOVERS = (TEMPORARY_SUFFIX, ".deleted", ".cleaned")  # of interrupted work; never needed


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A log as its files now are. segments: at least one, in order. producers: None where none are remembered."""

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
    segments = _segments(disk, path, config)
    if not segments:
        return _create(disk, path, config, recovery_point)
    epochs = _epochs(disk, path)
    before = epochs.entries
    first = _first_scanned(segments, recovery_point, clean) if epochs.entries else 0
    rules = ScanRules(recovery_point, MAX_OFFSET if clean else recovery_point, config.index_interval_bytes)
    loaded = _recover(disk, path, segments[:first], segments[first:], epochs, rules)
    if loaded.epochs.entries != before:
        write_atomically(disk, f"{path}/{CHECKPOINT_NAME}", loaded.epochs.render())
    return loaded


def _segments(disk: Disk, path: str, config: LogConfig) -> list[Segment]:
    """Every `.log` file. Leftovers and indexes without a log are removed; other files are none of ours."""
    try:
        names = disk.list(path)
    except FileMissing:
        disk.make_directory(path)
        disk.sync_directory(parent_of(path))
        return []
    parsed = {name: found for name in names if (found := parse_segment_name(name)) is not None}
    bases = [base for base, suffix in parsed.values() if suffix == LOG_SUFFIX]
    for name in names:
        orphan = name in parsed and parsed[name][1] == INDEX_SUFFIX and parsed[name][0] not in bases
        if orphan or name.endswith(_LEFTOVERS):
            disk.unlink(f"{path}/{name}")
    return [Segment(disk, path, base, config.index_interval_bytes) for base in bases]


def _create(disk: Disk, path: str, config: LogConfig, recovery_point: Offset) -> LoadedLog:
    segment = Segment(disk, path, 0, config.index_interval_bytes)
    segment.create()
    disk.sync_directory(path)
    report = RecoveryReport(lost_below_recovery_point=recovery_point > 0)
    return LoadedLog((segment,), LeaderEpochCache(), 0, report)


def _epochs(disk: Disk, path: str) -> LeaderEpochCache:
    """Empty where the checkpoint is lost, unreadable or empty: every record has an epoch, so the log is scanned."""
    checkpoint = f"{path}/{CHECKPOINT_NAME}"
    try:
        return LeaderEpochCache.parse(checkpoint, disk.read_bytes(checkpoint))
    except (FileMissing, CorruptCheckpoint):
        return LeaderEpochCache()


def _first_scanned(segments: list[Segment], recovery_point: Offset, clean: bool) -> int:
    """Number of the first segment to scan; len(segments) where the log was closed cleanly and its end agrees."""
    last = len(segments) - 1
    if clean:
        try:
            end = segments[last].next_offset(segments[last].size)
        except CorruptBatch:
            return last
        return len(segments) if 0 <= end - segments[last].base_offset <= MAX_RELATIVE_OFFSET + 1 else last
    return max([number for number in range(last + 1) if segments[number].base_offset <= recovery_point], default=0)


def _recover(
    disk: Disk, path: str, trusted: list[Segment], suspect: list[Segment], epochs: LeaderEpochCache, rules: ScanRules
) -> LoadedLog:
    """Scan the suspect segments, cut the log at the first fault, and make what is kept durable."""
    if not suspect:
        end_offset = trusted[-1].next_offset(trusted[-1].size)
        epochs.truncate_from_end(end_offset)
        return LoadedLog(tuple(trusted), epochs, end_offset, RecoveryReport())
    for segment in suspect:
        segment.file.drop_cached()  # the process before may have ended because a sync failed
    scan = _scan_for(suspect[0].base_offset, epochs, rules)
    sizes = [segment.size for segment in suspect]
    kept = _scan_all(scan, suspect)
    _repair(disk, path, kept, suspect[len(kept) :])
    report = RecoveryReport(
        scanned_bytes=sum(sizes[: len(kept)]),
        cut_bytes=sum(sizes) - sum(segment.size for segment in kept),
        reason=scan.reason,
        lost_below_recovery_point=scan.next_offset < rules.recovery_point,
    )
    return LoadedLog((*trusted, *kept), epochs, scan.next_offset, report)


def _scan_for(base_offset: Offset, epochs: LeaderEpochCache, rules: ScanRules) -> Scan:
    """Epochs from the first scanned offset on are forgotten: the batches say them again."""
    epochs.truncate_from_end(base_offset)
    return Scan(rules, epochs, base_offset, epochs.last_epoch)


def _scan_all(scan: Scan, suspect: list[Segment]) -> list[Segment]:
    """The segments that stay, each with its valid size."""
    kept: list[Segment] = []
    for segment in suspect:
        if not scan.reason and not scan.follows(segment.base_offset):
            scan.reason = f"{segment.path} begins where offset {scan.next_offset} should follow"
        if scan.reason:
            break
        scan.segment(segment)
        kept.append(segment)
    return kept


def _repair(disk: Disk, path: str, kept: list[Segment], dropped: list[Segment]) -> None:
    """Names first, the last one first, then bytes: a crash in between leaves a prefix of the log for the next try."""
    for segment in reversed(dropped):
        segment.remove()
    for segment in kept:
        segment.remove_index()
    disk.sync_directory(path)
    for segment in kept:
        segment.truncate()
        segment.sync()
    for segment in kept[:-1]:
        segment.write_index()
