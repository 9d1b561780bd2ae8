"""Log directories, what opening their logs found, compaction and the check in the background."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from quorumlog.histogram import Histogram
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Rest, Series
from quorumlog_server.process.offline import offline_directories
from quorumlog_storage.files.disk import DiskError

if TYPE_CHECKING:
    from quorumlog_broker.node import Broker

_LOGS = "kafka.log:type=LogManager,name="


def _gauge(name: str, asks: str, mbean: str = "", unit: str = "", rest: Rest = Rest.SUM) -> Series:
    return Series(name, Kind.GAUGE, unit, (), asks, mbean, rest)


def _total(name: str, asks: str, unit: str = "") -> Series:
    return Series(name, Kind.COUNTER, unit, (), asks)


def _of_dir(name: str, kind: Kind, asks: str, mbean: str = "", unit: str = "", rest: Rest = Rest.SUM) -> Series:
    return Series(name, kind, unit, ("dir",), asks, mbean, rest)


OFFLINE = _gauge("dirs_offline", "How many log directories have failed, or hang?", f"{_LOGS}OfflineLogDirectoryCount")
BYTES = Series(
    "log_bytes",
    Kind.GAUGE,
    "bytes",
    ("topic",),
    "How large are the replicas of a topic on this broker?",
    "kafka.log:type=Log,name=Size",
)
SEGMENTS = _gauge("log_segments", "How many segments have the replicas?", "kafka.log:type=Log,name=NumLogSegments")
FLUSH = Series(
    "flush_seconds",
    Kind.HISTOGRAM,
    "seconds",
    ("dir",),
    "How long does the disk take to make a log's records durable?",
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    buckets="disk",
)
STRAYS = _gauge(
    "stray_logs",
    "How many logs were set aside since the start, because the metadata do not give them to this broker?",
)
FREE = _of_dir("dir_free_bytes", Kind.GAUGE, "How much room is left, as last measured?", unit="bytes")
TOTAL = _of_dir("dir_total_bytes", Kind.GAUGE, "How large is its file system? 0: not measured yet.", unit="bytes")
RESERVE = _of_dir("dir_reserve_bytes", Kind.GAUGE, "Below which room are producers refused?", unit="bytes")
SHORT = _of_dir("dir_short_of_space", Kind.GAUGE, "Are producers refused for lack of room?")
OPENING = _of_dir(
    "dir_opening_seconds",
    Kind.GAUGE,
    "For how long has a directory not answered the start?",
    unit="seconds",
    rest=Rest.LARGEST,
)
TO_RECOVER = _of_dir(
    "logs_to_recover",
    Kind.GAUGE,
    "How many logs are not open yet? None is shown after the start.",
    f"{_LOGS}remainingLogsToRecover",
)
SEGMENTS_TO_RECOVER = _of_dir(
    "segments_to_recover",
    Kind.GAUGE,
    "How many segments of the logs under way are not verified yet?",
    f"{_LOGS}remainingSegmentsToRecover",
)
BYTES_TO_RECOVER = _of_dir("bytes_to_recover", Kind.GAUGE, "How many bytes of them are not?", unit="bytes")
CUT_LOGS = _gauge("recovery_cut_logs", "Of how many logs was the end cut at the start?")
CUT_BYTES = _gauge("recovery_cut_bytes", "How much was cut then, and is kept in .cut files?", unit="bytes")
DAMAGED_LOGS = _gauge("recovery_damaged_logs", "How many logs had lost synced records at the start?")
BLOCKED = _gauge(
    "retention_blocked_logs", "How many logs keep everything because of their records' times? The status says which."
)
OPEN_FILES = _gauge("log_open_files", "How many segment files are open?")
OPEN_FILES_MAX = _gauge("log_open_files_max", "Which log.open.files.max is in force?")
INDEX_BYTES = _gauge("log_index_bytes", "How much memory do loaded indexes take?", unit="bytes")

CLEANER_ROUNDS = _total("cleaner_rounds_total", "How often was a log compacted?")
CLEANER_FAILURES = _total("cleaner_failures_total", "How often did that fail?")
CLEANER_READ = _total("cleaner_read_bytes_total", "How much has compaction read?", "bytes")
CLEANER_WRITTEN = _total("cleaner_written_bytes_total", "How much has it written?", "bytes")
CLEANER_FREED = _total("cleaner_freed_bytes_total", "By how much has it made logs smaller?", "bytes")
CLEANER_KEYLESS = _total("cleaner_keyless_records_total", "How many records did it drop for want of a key?")
UNCLEANABLE = _gauge(
    "cleaner_uncleanable",
    "Of how many logs did the last compaction fail? `quorumlog log explain-compaction` says why.",
    f"{_LOGS}uncleanable-partitions-count",
)
UNCLEANABLE_BYTES = _gauge("cleaner_uncleanable_bytes", "How large are these logs?", unit="bytes")
CLEANER_PAUSED = _gauge(
    "cleaner_paused_seconds",
    "For how long is nothing compacted yet, because a backup copies? 0: it is.",
    unit="seconds",
)
HELD = _gauge("retention_held", "Does nothing expire here, as a restore leaves a cluster (1), or does it (0)?")
LOOK_AGE = _gauge("cleaner_look_age_seconds", "When did the cleaner last look for a log?", unit="seconds")
DIRTY_RATIO = _gauge(
    "cleaner_max_dirty_ratio",
    "Which share of the dirtiest log was dirty then, 0 to 1?",
    "kafka.log:type=LogCleanerManager,name=max-dirty-percent",
)
COMPACTION_DELAY = _gauge(
    "cleaner_max_compaction_delay_seconds",
    "How long after max.compaction.lag.ms was a record not compacted then?",
    "kafka.log:type=LogCleaner,name=max-compaction-delay-secs",
    "seconds",
)

CHECK_PASSES = _of_dir("index_check_passes_total", Kind.COUNTER, "How often were all closed segments checked?")
CHECK_END = _of_dir(
    "index_check_last_pass_end_seconds",
    Kind.GAUGE,
    "When did the last pass end, in seconds since 1970? 0: there was none.",
    unit="seconds",
    rest=Rest.LEAST,
)
CHECK_READ = _of_dir(
    "index_check_read_bytes_total", Kind.COUNTER, "How much was compared with its index?", unit="bytes"
)
CHECK_WRONG = _of_dir("index_check_wrong_indexes_total", Kind.COUNTER, "How many indexes were wrong, and made anew?")
CHECK_DAMAGED = _of_dir("index_check_damaged_batches", Kind.GAUGE, "How many batches did the newest pass find damaged?")

SERIES: Final = (
    BYTES, SEGMENTS, FLUSH, STRAYS, OFFLINE,
    FREE, TOTAL, RESERVE, SHORT, OPENING, TO_RECOVER, SEGMENTS_TO_RECOVER, BYTES_TO_RECOVER, CUT_LOGS, CUT_BYTES,
    DAMAGED_LOGS, BLOCKED, OPEN_FILES, OPEN_FILES_MAX, INDEX_BYTES, CLEANER_ROUNDS, CLEANER_FAILURES, CLEANER_READ,
    CLEANER_WRITTEN, CLEANER_FREED, CLEANER_KEYLESS, UNCLEANABLE, UNCLEANABLE_BYTES, CLEANER_PAUSED,
    HELD, LOOK_AGE, DIRTY_RATIO, COMPACTION_DELAY, CHECK_PASSES, CHECK_END, CHECK_READ, CHECK_WRONG, CHECK_DAMAGED,
)  # fmt: skip


def collect(source: Source, out: Reading) -> None:
    node = source.node
    out.add(OFFLINE, len(offline_directories(node)))
    for path, waited_ms in out.each(node.unanswered_directories.items()):
        out.add(OPENING, waited_ms / 1000, path)
    _collect_recovery(source, out)
    resources = node.edges.disk.resources
    out.add(OPEN_FILES, len(resources.open_files))
    out.add(OPEN_FILES_MAX, resources.open_files.limit)
    out.add(INDEX_BYTES, resources.indexes.weight)
    broker = node.broker
    _collect_metadata_log(source, out)
    for path in sorted({life.path for life in node.lives}):
        out.add_histogram(FLUSH, resources.flushes.get(path) or Histogram("disk"), path)
    if broker is not None:
        _collect_logs(broker, out)
        out.add(STRAYS, broker.data_plane.store.strays)
        _collect_directories(broker, out)
        _collect_cleaner(broker, source, out)
        _collect_index_checks(broker, out)
        out.add(BLOCKED, len(broker.data_plane.blocked_retention))


def _collect_metadata_log(source: Source, out: Reading) -> None:
    driver = source.node.driver
    if driver is not None and driver.opened is not None:
        with suppress(DiskError):
            out.add(BYTES, driver.opened.log.size_bytes, METADATA_TOPIC)


def _collect_logs(broker: Broker, out: Reading) -> None:
    """A log whose files do not answer is left out."""
    segments, by_topic = 0, dict[str, int]()
    for one in out.each(broker.data_plane.registry.replicas.values()):
        if one.log is None:
            continue
        view = one.log.view
        try:
            size = view.last_size
            for segment in view.segments[:-1]:
                size += segment.size
        except DiskError:
            continue
        by_topic[one.topic] = by_topic.get(one.topic, 0) + size
        segments += len(view.segments)
    for topic, size in by_topic.items():
        out.add(BYTES, size, topic)
    out.add(SEGMENTS, segments)


def _collect_recovery(source: Source, out: Reading) -> None:
    """What this process found when it opened its logs."""
    driver, broker = source.node.driver, source.node.broker
    findings = [] if broker is None else list(broker.data_plane.recovery_findings.all)
    found = [(one.report, one.lost_before) for one in findings]
    if driver is not None and driver.opened is not None:
        found.append((driver.opened.log.recovery, driver.opened.lost_before))
    cut = [report.cut_bytes for report, _ in found if report.cut_bytes]
    out.add(CUT_LOGS, len(cut))
    out.add(CUT_BYTES, sum(cut))
    out.add(DAMAGED_LOGS, sum(bool(lost_before) for _, lost_before in found))


def _collect_directories(broker: Broker, out: Reading) -> None:
    for one in out.each(broker.data_plane.opening_progress.by_directory()):
        out.add(TO_RECOVER, one.logs_left, one.path)
        out.add(SEGMENTS_TO_RECOVER, one.segments_left, one.path)
        out.add(BYTES_TO_RECOVER, one.bytes_left, one.path)
    for queue in out.each(broker.data_plane.store.queues.values()):
        path, space = queue.directory.path, queue.space
        out.add(FREE, space.left_bytes, path)
        out.add(TOTAL, space.total_bytes, path)
        out.add(RESERVE, space.reserve_bytes, path)
        out.add(SHORT, space.is_short, path)


def _collect_cleaner(broker: Broker, source: Source, out: Reading) -> None:
    from quorumlog_broker.replicas.own_settings import is_all_kept  # a controller alone has no broker's modules

    cleaner, uncleanable = broker.data_plane.cleaner, broker.data_plane.compactions.uncleanable
    totals = cleaner.totals
    out.add(CLEANER_ROUNDS, totals.rounds)
    out.add(CLEANER_FAILURES, totals.failures)
    out.add(CLEANER_READ, totals.bytes_read)
    out.add(CLEANER_WRITTEN, totals.bytes_written)
    out.add(CLEANER_FREED, totals.bytes_freed)
    out.add(CLEANER_KEYLESS, totals.keyless)
    out.add(UNCLEANABLE, uncleanable.logs)
    out.add(UNCLEANABLE_BYTES, uncleanable.bytes)
    out.add(CLEANER_PAUSED, cleaner.paused_ms / 1000)
    out.add(HELD, is_all_kept(broker.data_plane.registry.image, source.node.config.node_id))
    looked = cleaner.looked
    if looked.at_ms is not None:
        out.add(LOOK_AGE, (source.now_ms - looked.at_ms) / 1000)
        out.add(DIRTY_RATIO, looked.largest_ratio)
        out.add(COMPACTION_DELAY, looked.longest_overdue_ms / 1000)


def _collect_index_checks(broker: Broker, out: Reading) -> None:
    """Of the check in the background (`quorumlog_broker/scrub/`)."""
    for one in out.each(broker.data_plane.index_checks.values()):
        out.add(CHECK_PASSES, one.passes, one.path)
        out.add(CHECK_END, one.ended_ms / 1000, one.path)
        out.add(CHECK_READ, one.size_bytes, one.path)
        out.add(CHECK_WRONG, one.faults, one.path)
        out.add(CHECK_DAMAGED, len(one.damage), one.path)
