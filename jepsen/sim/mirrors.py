"""The logs on the disks of all machines, and the committed truth of each log.

A log is named by `log_id`, that is by its directory and its topic id: a topic that is deleted and made anew under its
name has other logs. The metadata log has no topic id and is named METADATA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from broker.replicas.replica import Replica
from jepsen.checkers.findings import Findings
from jepsen.sim.log_mirror import SEGMENT_SUFFIX, Batch, LogMirror, topic_id_of
from jepsen.sim.machine import Machine
from jepsen.sim.settings import DATA, METADATA_LOG
from jepsen.sim.truth import LogTruth
from quorumlog.ids import Uuid
from storage.partition_metadata import PARTITION_METADATA

METADATA = METADATA_LOG.rpartition("/")[2]


OnWritten = Callable[[Machine, str, Batch], None]  # machine, log, batch


def log_id(name: str, topic_id: Uuid) -> str:
    """name: of the directory, `topic-0`."""
    return f"{name}@{topic_id.hex()}"


class Mirrors:
    """on_written: called when a process has appended a batch to a log, with its log."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.on_written: OnWritten = lambda _machine, _log, _batch: None
        self._mirrors: dict[tuple[str, str], dict[str, LogMirror]] = {}  # by host and directory, then by log
        self._truths: dict[str, LogTruth] = {}  # by log
        self.cut: dict[str, None] = {}  # logs that may have become shorter on some disk; cleared by the reader

    def of(self, machine: Machine, log: str) -> LogMirror:
        """log: METADATA or a `log_id`."""
        name, _, topic_id = log.partition("@")
        mirrors = self._mirrors.setdefault((machine.host, name), {})
        if log not in mirrors:
            truth = self.truth(log)
            mirrors[log] = LogMirror(
                machine.disk,
                f"{DATA}/{name}",
                partial(truth.on_batch, where=machine.host),
                lambda batch: self.on_written(machine, log, batch),
                topic_id=bytes.fromhex(topic_id) if topic_id else None,
                chain_before=truth.chain_before,
            )
        return mirrors[log]

    def of_replica(self, machine: Machine, replica: Replica) -> LogMirror:
        return self.of(machine, log_of(replica))

    def truth(self, log: str) -> LogTruth:
        if log not in self._truths:
            self._truths[log] = LogTruth(log, self._findings)
        return self._truths[log]

    def truths(self) -> list[LogTruth]:
        return list(self._truths.values())

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A machine's disk has finished an operation."""
        if kind == "crash":
            for host, name in self._mirrors:
                if host == machine.host:
                    self._forget(machine.host, name)
            return
        if not path.startswith(DATA + "/"):
            return
        name, _, file = path[len(DATA) + 1 :].partition("/")
        if file.endswith(SEGMENT_SUFFIX):
            self._on_segment(machine, kind, name, file)
        elif (kind in ("rename", "remove_tree") and not file) or (kind == "rename" and PARTITION_METADATA in file):
            self._forget(machine.host, name)

    def _on_segment(self, machine: Machine, kind: str, name: str, file: str) -> None:
        if kind == "pwritev":
            if (machine.host, name) not in self._mirrors:
                self._find(machine, name)
            for mirror in self._mirrors.get((machine.host, name), {}).values():
                mirror.on_write(file)
        elif kind in ("truncate", "unlink", "rename", "drop_cached"):
            self._forget(machine.host, name)

    def _find(self, machine: Machine, name: str) -> None:
        """Begin to mirror the log that is in a directory now."""
        topic_id = topic_id_of(machine.disk, f"{DATA}/{name}")
        if topic_id is not None or name == METADATA:
            self.of(machine, METADATA if topic_id is None else log_id(name, topic_id))

    def _forget(self, host: str, name: str) -> None:
        for log, mirror in self._mirrors.get((host, name), {}).items():
            mirror.forget()
            self.cut[log] = None


def log_of(replica: Replica) -> str:
    return log_id(replica.name, replica.key[0])
