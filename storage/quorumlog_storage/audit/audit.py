"""One audit of any number of directories: log directories of nodes, or directories of single logs.

Partitions that several nodes hold are compared with each other. Within one node a partition must lie in one directory.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_storage.audit.compare import compare_replicas
from quorumlog_storage.audit.directory_audit import (
    DirectoryReport,
    ExtraCheck,
    Options,
    TopicPartition,
    audit_directory,
    is_log_directory,
    parsed,
)
from quorumlog_storage.audit.finding import Finding, Findings, Weight
from quorumlog_storage.audit.log_audit import LogReport, Progress, audit_log
from quorumlog_storage.directory.directory import LOCK_NAME
from quorumlog_storage.directory.meta_properties import META_PROPERTIES
from quorumlog_storage.files.disk import Disk, Lock, name_of, parent_of


@dataclass(slots=True, kw_only=True)
class AuditReport:
    """directories: in the order given. findings: of what concerns several of them. compared: partitions."""

    directories: list[DirectoryReport] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    compared: int = 0

    @property
    def logs(self) -> list[tuple[TopicPartition, LogReport]]:
        return [pair for directory in self.directories for pair in directory.logs.items()]

    @property
    def faults(self) -> list[Finding]:
        return [fault for findings in self._all() for fault in findings.faults]

    @property
    def notes(self) -> list[Finding]:
        return [note for findings in self._all() for note in findings.notes]

    def _all(self) -> list[Findings]:
        of_directories = [one for report in self.directories for one in (report.findings, *_of_logs(report))]
        return [*of_directories, self.findings]


def audit(
    disk: Disk,
    paths: list[str],
    options: Options | None = None,
    *,
    replicas: bool = False,
    to_end: bool = False,
    progress: Progress = lambda _: None,
    check_extra: ExtraCheck = lambda *_: None,
) -> AuditReport:
    """paths: without a slash at the end. Each directory is locked meanwhile, so that no node starts on it.

    replicas: the directories, of one log each, are replicas of one partition, whatever they are called. to_end: see
    quorumlog_storage/audit/compare.py. Raises DirectoryLocked if a node runs on one; DiskError if one cannot be listed.
    """
    report = AuditReport()
    with ExitStack() as locks:
        for path in paths:
            whole = is_log_directory(disk, path)
            lock: Lock = disk.lock(f"{path if whole else parent_of(path)}/{LOCK_NAME}")
            locks.callback(lock.release)
            one = audit_directory if whole else _audit_one
            report.directories.append(one(disk, path, options, progress, check_extra))
        _one_place_each(report)
        for line, group in _groups(report, replicas):
            report.compared += 1
            # No high watermark of the metadata log is noted: which end of it was committed, its files do not say.
            is_metadata = line[0] == METADATA_TOPIC
            for log in group if is_metadata else ():
                log.high_watermark = log.end
            weight = Weight.NOTE if is_metadata else Weight.FAULT
            differences = compare_replicas(
                disk, group, to_end=to_end and not is_metadata, weight=weight, progress=progress
            )
            report.findings.extend(differences)
    return report


def _audit_one(
    disk: Disk, path: str, options: Options | None, progress: Progress, check_extra: ExtraCheck
) -> DirectoryReport:
    """The directory of one log, with what the log directory around it notes of it, if there is one."""
    found, parent = parsed(name_of(path)), parent_of(path)
    if found is not None and not found.mark and disk.exists(f"{parent}/{META_PROPERTIES}"):
        return audit_directory(disk, parent, options, progress, check_extra, only=(found.topic, found.partition))
    report = DirectoryReport(path=path, is_clean=True)
    line = (name_of(path), 0) if found is None else (found.topic, found.partition)
    report.logs[line] = audit_log(disk, path, progress=progress)
    return report


def _one_place_each(report: AuditReport) -> None:
    """No directory id twice; no partition in two directories of one node."""
    directories: dict[bytes, str] = {}
    places: dict[tuple[str, int, TopicPartition], str] = {}
    for directory in report.directories:
        meta = directory.meta
        if meta is None:
            continue
        other = directories.setdefault(meta.directory_id, directory.path)
        if other != directory.path:
            report.findings.add(
                "directory-id", directory.path, expected="an id of its own",
                found=f"that of {other}: one is a copy of the other",
            )  # fmt: skip
            continue
        for line, log in directory.logs.items():
            place = places.setdefault((meta.cluster_id, meta.node_id, line), log.path)
            if place != log.path:
                report.findings.add(
                    "partition-twice", log.path, expected="one directory of a node that holds it",
                    found=f"another copy in {place}",
                )  # fmt: skip


def _groups(report: AuditReport, replicas: bool) -> list[tuple[TopicPartition, list[LogReport]]]:
    """Logs to compare with each other: at most one of each node."""
    if replicas:
        return [(report.logs[0][0], [log for _, log in report.logs])]
    held: dict[tuple[str, TopicPartition], dict[object, LogReport]] = {}
    for number, directory in enumerate(report.directories):
        cluster = "" if directory.meta is None else directory.meta.cluster_id
        node: object = f"directory {number}" if directory.meta is None else directory.meta.node_id
        for line, log in directory.logs.items():
            held.setdefault((cluster, line), {}).setdefault(node, log)
    return [(line, list(logs.values())) for (_, line), logs in held.items() if len(logs) > 1]


def _of_logs(report: DirectoryReport) -> list[Findings]:
    return [log.findings for log in report.logs.values()]
