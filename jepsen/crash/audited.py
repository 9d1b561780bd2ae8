"""What a start has made of a crash: its state in words, and the auditor's verdict on the files that it leaves."""

from __future__ import annotations

from jepsen.crash.check import require
from jepsen.crash.process import DATA
from jepsen.crash.world import World
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY
from quorumlog_storage.audit.directory_audit import audit_directory


def recovered_state(world: World) -> str:
    """Each log of the process that has just started: its range, its epochs, and what recovery did to it."""
    return "; ".join(f"{topic} {_state_of(log)}" for topic, log in sorted(world.process.all_logs().items()))


def _state_of(log: object) -> str:
    from quorumlog_storage.log.log import Log

    assert isinstance(log, Log)
    did = "cut" if log.recovery.cut_bytes else "scanned" if log.recovery.scanned_bytes else "trusted"
    epochs = ",".join(f"{entry.epoch}@{entry.start_offset}" for entry in log.epochs.entries)
    return f"[{log.start_offset}, {log.end_offset}) of {epochs or 'no epoch'} {did}"


def require_clean_audit(world: World) -> None:
    """The files of the logs that a process has just opened are without a fault. Raises Violation."""
    if METADATA_DIRECTORY not in world.process.all_logs():
        return  # of a workload without the usual directory
    report = audit_directory(world.disk, DATA)
    faults = [*report.findings.faults, *(fault for log in report.logs.values() for fault in log.findings.faults)]
    require(not faults, "audit", "; ".join(map(str, faults[:3])))
