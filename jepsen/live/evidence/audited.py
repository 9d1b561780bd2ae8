"""The auditor closes a live run: after the nodes have stopped, it reads every byte that they left.

The partitions were whole and at rest when the nodes stopped, so their replicas must be the same to their ends. Nothing
expires within a run, so every producer that wrote must be remembered. What the faults of a run may leave (a torn tail
behind the recovery point, files that recovery has set aside) are notes of the auditor, and no findings.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jepsen.checkers.findings import Finding
from quorumlog_cli.offline.audit_metadata import check_metadata_files, compacted_topics, image_in
from quorumlog_storage.audit.audit import AuditReport, audit
from quorumlog_storage.audit.directory_audit import Options
from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk
from quorumlog_storage.files.disk import DirectoryLocked, DiskError

AUDIT = "audit"
MOST_TOLD = 50


def audit_nodes(directories: Iterable[Path], *, at_rest: bool = True) -> tuple[list[Finding], AuditReport | None]:
    """directories: the log directories of all nodes. None: the audit itself was not possible, which is a finding."""
    paths = [str(path) for path in directories]
    options = Options(compacted=compacted_topics(image_in(paths)), nothing_expired=True)
    try:
        report = audit(ReadOnlyDisk(), paths, options, to_end=at_rest, check_extra=check_metadata_files)
    except (DirectoryLocked, DiskError) as error:
        return [Finding(AUDIT, f"not possible: {error}")], None
    return [Finding(f"{AUDIT}-{fault.check}", str(fault)) for fault in report.faults[:MOST_TOLD]], report


def line_of(report: AuditReport) -> str:
    """What was looked at, in a line."""
    logs = [log for _, log in report.logs]
    sizes = f"{sum(log.batches for log in logs):,} batches, {sum(log.size for log in logs) / 1e6:,.1f} MB"
    counts = f"{len(report.faults)} faults, {len(report.notes)} notes"
    return f"audit of {len(logs)} logs in {len(report.directories)} directories: {sizes}, {counts}"
