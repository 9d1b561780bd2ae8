"""The audit of a log directory: its own files, what its offset files say, and every log in it.

meta.properties              cluster, node and directory id can be read
the offset files             can be read; a line without a log is a note, for a deletion that broke off leaves one
<topic>-<partition>/         an audit of its own (log_audit.py), with the offsets that are noted for it
...-delete, -stray, -future  named, and not looked into: they are on their way out, set aside, or on their way in
__cluster_metadata-0/        the same audit; what else lies in it is the quorum's (`check_extra`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from quorumlog.ids import Offset
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_storage.audit import files as names
from quorumlog_storage.audit.finding import Findings
from quorumlog_storage.audit.log_audit import About, LogReport, Progress, audit_log
from quorumlog_storage.directory.meta_properties import META_PROPERTIES, VERSION_OF_ZOOKEEPER, MetaProperties
from quorumlog_storage.directory.offset_files import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    LOST_OFFSETS,
    RECOVERY_POINTS,
    parse_offsets,
)
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing
from quorumlog_storage.files.names import BadDirectoryName, PartitionName, parse_directory
from quorumlog_storage.files.properties import BadProperties, parse_properties
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
OFFSET_FILES = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, LOST_OFFSETS, CLEANER_OFFSETS)
KNOWN = (
    META_PROPERTIES,
    CLEAN_SHUTDOWN,
    ".lock",
    ".probe",
    "lost+found",
    "bootstrap.checkpoint",
    "cluster.secret",
    *OFFSET_FILES,
)

TopicPartition = tuple[str, int]
ExtraCheck = Callable[[Disk, str, LogReport], object]  # of the metadata log's own files; adds to the report's findings


@dataclass(slots=True, kw_only=True)
class DirectoryReport:
    """findings: of the directory's own files; those of a log are in its report. marked: names on their way."""

    path: str
    meta: MetaProperties | None = None
    is_clean: bool = False
    logs: dict[TopicPartition, LogReport] = field(default_factory=dict)
    marked: list[str] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """compacted: names of topics whose logs may have gaps; None: any may. by_kafka: Kafka wrote the directory, perhaps
    in ZooKeeper's time. The others are those of `About`.
    """

    compacted: frozenset[str] | None = frozenset()
    gaps_between_segments: bool = False
    nothing_expired: bool = False
    by_kafka: bool = False


def is_log_directory(disk: Disk, path: str) -> bool:
    """Rather than the directory of one log."""
    if disk.exists(f"{path}/{META_PROPERTIES}"):
        return True
    found = [name for name in disk.list(path) if disk.is_directory(f"{path}/{name}") and parsed(name) is not None]
    return bool(found) and not any(name.endswith(names.LOG) for name in disk.list(path))


def parsed(name: str) -> PartitionName | None:
    """What the name of a partition's directory says; None for every other name."""
    try:
        return parse_directory(name)
    except BadDirectoryName:
        return None


def audit_directory(
    disk: Disk,
    path: str,
    options: Options | None = None,
    progress: Progress = lambda _: None,
    check_extra: ExtraCheck = lambda *_: None,
    only: TopicPartition | None = None,
) -> DirectoryReport:
    """only: this log alone. Raises DiskError if the directory itself cannot be listed."""
    options = options or Options()
    report = DirectoryReport(path=path, is_clean=disk.exists(f"{path}/{CLEAN_SHUTDOWN}"))
    _read_meta(disk, report, by_kafka=options.by_kafka)
    notes = {name: _read_offsets(disk, report, name) for name in OFFSET_FILES}
    for name in disk.list(path):
        found = parsed(name) if disk.is_directory(f"{path}/{name}") else None
        line = None if found is None or found.mark else (found.topic, found.partition)
        if only is not None and line != only:
            continue
        if found is None:
            _look_at_name(report, name, is_directory=disk.is_directory(f"{path}/{name}"))
        elif found.mark:
            report.marked.append(name)
            report.findings.note("marked-directory", f"{path}/{name}", f"a partition marked {found.mark}")
        elif line is not None:
            about = _about(disk, report, line, notes, options)
            log = audit_log(disk, f"{path}/{name}", about, progress)
            if about.is_metadata:
                check_extra(disk, f"{path}/{name}", log)
            report.logs[line] = log
    if only is None:
        _lines_without_logs(report, notes)
    return report


def _about(
    disk: Disk, report: DirectoryReport, line: TopicPartition, notes: dict[str, dict[TopicPartition, Offset]],
    options: Options,
) -> About:  # fmt: skip
    is_metadata = line[0] == METADATA_TOPIC
    may_have_gaps = options.compacted is None or line[0] in options.compacted or line in notes[CLEANER_OFFSETS]
    about = About(
        recovery_point=notes[RECOVERY_POINTS].get(line), log_start=notes[LOG_STARTS].get(line),
        high_watermark=notes[HIGH_WATERMARKS].get(line), clean=report.is_clean, compacted=may_have_gaps,
        gaps_between_segments=may_have_gaps and options.gaps_between_segments,
        nothing_expired=options.nothing_expired, is_metadata=is_metadata,
    )  # fmt: skip
    if not is_metadata:
        return about
    own = {name: f"{report.path}/{METADATA_TOPIC}-{line[1]}/{name}" for name in (RECOVERY_POINTS, LOG_STARTS)}
    point, start = (_offsets_in(disk, report.findings, path).get(line) for path in own.values())
    return replace(
        about,
        recovery_point=about.recovery_point if point is None else point,
        log_start=about.log_start if start is None else start,
    )


def _read_meta(disk: Disk, report: DirectoryReport, *, by_kafka: bool) -> None:
    """by_kafka: a file of version 0 has no id of the directory, and is none the worse for it."""
    path = f"{report.path}/{META_PROPERTIES}"
    try:
        content = disk.read_bytes(path)
        if by_kafka and parse_properties(path, content).get("version") == VERSION_OF_ZOOKEEPER:
            report.findings.note("meta-properties-0", path, "version 0, of ZooKeeper's time: it names no directory")
            return
        report.meta = MetaProperties.parse(path, content)
    except FileMissing:
        report.findings.note("not-formatted", path, "no such file: this is no node's log directory, or a part of one")
    except BadProperties as error:
        report.findings.add("meta-properties", path, expected="the ids of a log directory", found=error.reason)
    except DiskError as error:
        report.findings.add("unreadable", path, expected="a readable file", found=str(error))


def _read_offsets(disk: Disk, report: DirectoryReport, name: str) -> dict[TopicPartition, Offset]:
    return _offsets_in(disk, report.findings, f"{report.path}/{name}")


def _offsets_in(disk: Disk, findings: Findings, path: str) -> dict[TopicPartition, Offset]:
    try:
        offsets = parse_offsets(path, disk.read_bytes(path))
    except FileMissing:
        return {}
    except CorruptCheckpoint as error:
        findings.add("offset-file", path, expected="topic, partition and offset in each line", found=str(error))
        return {}
    except DiskError as error:
        findings.add("unreadable", path, expected="a readable file", found=str(error))
        return {}
    for line, offset in offsets.items():
        if offset < 0:
            findings.add("offset-file", path, expected="offsets from 0 on", found=f"{offset} for {line[0]}-{line[1]}")
    return offsets


def _look_at_name(report: DirectoryReport, name: str, *, is_directory: bool) -> None:
    path = f"{report.path}/{name}"
    if name.endswith((".corrupt", ".tmp", ".unreadable")) and not is_directory:
        report.findings.note("left-over", path, "what an interrupted or a damaged write has left")
    elif name not in KNOWN:
        kind = "a directory that is no partition's" if is_directory else "a file of no known kind"
        report.findings.add("unknown-file", path, expected="partitions and their notes", found=kind)


def _lines_without_logs(report: DirectoryReport, notes: dict[str, dict[TopicPartition, Offset]]) -> None:
    for name, line in _pairs(notes):
        if line not in report.logs:
            text = f"a line for {line[0]}-{line[1]}, which is not here"
            report.findings.note("offset-without-log", f"{report.path}/{name}", text)
        elif name == LOST_OFFSETS:
            text = f"{line[0]}-{line[1]} was found shorter than it had been, and the controller may not know it yet"
            report.findings.note("lost-records", f"{report.path}/{name}", text)


def _pairs(notes: dict[str, dict[TopicPartition, Offset]]) -> Iterator[tuple[str, TopicPartition]]:
    for name, offsets in notes.items():
        for line in offsets:
            yield name, line
