"""The logs on the disks of all machines, and the committed truth of each log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jepsen.checkers.findings import Findings
from jepsen.sim.log_mirror import SEGMENT_SUFFIX, Batch, LogMirror
from jepsen.sim.machine import Machine
from jepsen.sim.settings import DATA, METADATA_LOG
from jepsen.sim.truth import LogTruth

METADATA = METADATA_LOG.rpartition("/")[2]


OnWritten = Callable[[Machine, str, Batch], None]  # machine, log, batch


class Mirrors:
    """on_written: called when a process has appended a batch to a log, with the name of the log."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.on_written: OnWritten = lambda _machine, _log, _batch: None
        self._mirrors: dict[tuple[str, str], LogMirror] = {}  # by host and log
        self._truths: dict[str, LogTruth] = {}  # by log
        self.cut: dict[str, None] = {}  # logs that may have become shorter on some disk; cleared by the reader

    def of(self, machine: Machine, log: str) -> LogMirror:
        """log: the name of its directory, `topic-0`."""
        key = (machine.host, log)
        if key not in self._mirrors:
            truth = self.truth(log)
            on_batch = partial(truth.on_batch, where=machine.host)
            on_written = lambda batch: self.on_written(machine, log, batch)  # noqa: E731
            self._mirrors[key] = LogMirror(machine.disk, f"{DATA}/{log}", on_batch, on_written)
        return self._mirrors[key]

    def truth(self, log: str) -> LogTruth:
        if log not in self._truths:
            self._truths[log] = LogTruth(log, self._findings)
        return self._truths[log]

    def truths(self) -> list[LogTruth]:
        return list(self._truths.values())

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A machine's disk has finished an operation."""
        if kind == "crash":
            for (host, log), mirror in self._mirrors.items():
                if host == machine.host:
                    self._forget(log, mirror)
            return
        if not path.startswith(DATA + "/"):
            return
        log, _, file = path[len(DATA) + 1 :].partition("/")
        if kind in ("rename", "remove_tree") and not file:
            known = self._mirrors.get((machine.host, log))
            if known is not None:
                self._forget(log, known)
        elif file.endswith(SEGMENT_SUFFIX):
            mirror = self.of(machine, log)
            if kind == "pwritev":
                mirror.on_write(file)
            elif kind in ("truncate", "unlink", "rename", "drop_cached"):
                self._forget(log, mirror)

    def _forget(self, log: str, mirror: LogMirror) -> None:
        mirror.forget()
        self.cut[log] = None
