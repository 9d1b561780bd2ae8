"""The audit of one file by itself: a segment, an index against its segment, a snapshot, a checkpoint.

What only the whole log tells (a gap, an epoch's start, a producer's state) is left to the audit of its directory.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.ids import Offset
from quorumlog_storage.audit import files as names
from quorumlog_storage.audit.batches import Damage, FoundBatch, read_batches, record_problem
from quorumlog_storage.audit.entries import TRANSACTION_VERSION, AbortedTransaction, BadSnapshot, read_snapshot
from quorumlog_storage.audit.log_audit import LogReport, Progress
from quorumlog_storage.audit.segment_caches import SegmentCaches
from quorumlog_storage.audit.transactions import OpenTransactions
from quorumlog_storage.directory.meta_properties import META_PROPERTIES, MetaProperties
from quorumlog_storage.directory.offset_files import parse_offsets
from quorumlog_storage.directory.partition_metadata import BadPartitionMetadata, parse_partition_metadata
from quorumlog_storage.files.disk import Disk, name_of, parent_of
from quorumlog_storage.files.properties import BadProperties
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint
from quorumlog_storage.rules.epochs import LeaderEpochCache

TEXTS: dict[str, Callable[[str, bytes], object]] = {
    names.EPOCHS: LeaderEpochCache.parse,
    names.TOPIC_ID: parse_partition_metadata,
    META_PROPERTIES: MetaProperties.parse,
}
OFFSETS_SUFFIX = "-checkpoint"


class NotAuditable(Exception):
    """The auditor knows no rule for a file of that name."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is none of the files of a log: segments, indexes, snapshots and checkpoints")
        self.path = path


def audit_file(disk: Disk, path: str, progress: Progress = lambda _: None) -> LogReport:
    """Raises FileMissing, DiskError, NotAuditable."""
    report = LogReport(path=path)
    name = name_of(path)
    base, dot, suffix = name.partition(".")
    if dot + suffix in names.CACHE_SUFFIXES and _is_base(base):
        _index(disk, path, int(base), dot + suffix, report, progress)
    elif name.endswith((names.LOG, ".checkpoint")):
        _segment(disk, path, report, progress)
    elif name.endswith(names.SNAPSHOT):
        try:
            read_snapshot(disk.read_bytes(path))
        except BadSnapshot as error:
            report.findings.add(
                "snapshot-content", path, position=error.position, expected=error.expected, found=error.found
            )
    elif name in TEXTS or name.endswith(OFFSETS_SUFFIX):
        try:
            TEXTS.get(name, parse_offsets)(path, disk.read_bytes(path))
        except (CorruptCheckpoint, BadPartitionMetadata, BadProperties) as error:
            report.findings.add("text", path, expected="a file in its format", found=error.reason)
    else:
        raise NotAuditable(path)
    return report


def _is_base(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) == 20 and int(text) < 2**63


def _segment(disk: Disk, path: str, report: LogReport, progress: Progress) -> None:
    file = disk.open(path)
    try:
        report.segments, report.size = 1, file.size()
        for found in read_batches(file, report.size):
            if isinstance(found, Damage):
                text = f"{found.reason}; {found.end - found.position} bytes are none"
                check = "torn-tail" if found.torn else "batch-header"
                report.findings.add(check, path, position=found.position, expected="a whole batch", found=text)
                progress(found.end - found.position)
                continue
            _batch(path, found, report)
            progress(found.header.size)
    finally:
        file.close()


def _batch(path: str, found: FoundBatch, report: LogReport) -> None:
    header, findings = found.header, report.findings
    report.start = header.base_offset if report.batches == 0 else report.start
    report.batches += 1
    if not found.crc_ok:
        findings.add(
            "batch-checksum", path, position=found.position, offset=header.base_offset,
            expected=f"checksum {header.crc:#010x}", found=f"{found.crc:#010x}",
        )  # fmt: skip
        return
    report.records += header.count
    if header.base_offset < report.end:
        findings.add(
            "batch-offset", path, position=found.position, offset=header.base_offset,
            expected=f"offset {report.end} or later", found=str(header.base_offset),
        )  # fmt: skip
    report.end = header.next_offset
    problem = record_problem(found)
    if problem:
        findings.add(
            "batch-records", path, position=found.position, offset=header.base_offset,
            expected=f"{header.count} records", found=problem,
        )  # fmt: skip


def _index(disk: Disk, path: str, base: Offset, suffix: str, report: LogReport, progress: Progress) -> None:
    """Against the segment of that name. What the segment itself has wrong is not told here."""
    files = names.LogFiles()
    files.by_suffix[suffix].append(base)
    directory = parent_of(path)
    log = f"{directory}/{names.file_name(base, names.LOG)}"
    if not disk.exists(log):
        report.findings.note("orphan", path, "an index without a segment: only its form could be looked at")
        return
    caches = SegmentCaches(disk, directory, base, files, report.findings)
    transactions = OpenTransactions(is_complete=base == 0)
    file = disk.open(log)
    try:
        for found in read_batches(file, file.size()):
            if isinstance(found, FoundBatch):
                report.batches += 1
                progress(found.header.size)
                caches.batch(found)
                if suffix == names.TRANSACTION_INDEX:
                    _transactions(found, transactions, caches)
        caches.finish(transactions.is_complete)
    finally:
        file.close()
        caches.close()


def _transactions(found: FoundBatch, transactions: OpenTransactions, caches: SegmentCaches) -> None:
    ended = transactions.batch(found)
    if ended is None or ended[0].committed:
        return
    marker, first = found.header, ended[1]
    wanted = AbortedTransaction(
        TRANSACTION_VERSION, marker.producer_id, marker.base_offset if first is None else first, marker.last_offset,
        transactions.last_stable_offset(marker.last_offset),
    )  # fmt: skip
    caches.aborted.aborted(wanted, is_known=first is not None, is_exact=transactions.is_complete)
