"""The logs on the disks of all machines, and the committed truth of each log.

A log is named by `log_id`, that is by its directory and its topic id: a topic that is deleted and made anew under its
name has other logs. The metadata log has no topic id and is named METADATA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jepsen.checkers.findings import Findings
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import COMPACTED_TOPIC, DATA, DIRECTORIES, METADATA_LOG
from jepsen.sim.truth.directory_ids import is_of_node
from jepsen.sim.truth.log_mirror import SEGMENT_SUFFIX, Batch, LogMirror, topic_id_of
from jepsen.sim.truth.log_truth import LogTruth
from jepsen.sim.truth.places import is_copy, live_name, place_of
from quorumlog.ids import Offset, Uuid
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.directory.mark import MARK_NAME
from quorumlog_storage.directory.partition_metadata import PARTITION_METADATA

METADATA = METADATA_LOG.rpartition("/")[2]
_MOVES = ("rename", "remove_tree", "replace")  # kinds after which a directory may hold another log, or none


MayBegin = Callable[[Machine, str, Offset], bool]  # machine, log, base
OnWritten = Callable[[Machine, str, Batch], None]  # machine, log, batch


def log_id(name: str, topic_id: Uuid) -> str:
    """name: of the directory, `topic-0`."""
    return f"{name}@{topic_id.hex()}"


class Mirrors:
    """may_begin_at: asked where a log begins after the last offset before which records may be gone.

    on_written: called when a process has appended a batch to a log, with its log."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.may_begin_at: MayBegin = lambda _machine, _log, _base: False
        self.on_written: OnWritten = lambda _machine, _log, _batch: None
        self._mirrors: dict[tuple[str, str], dict[str, LogMirror]] = {}  # by host and directory, then by log
        self._known: dict[tuple[str, str], LogMirror] = {}  # the same by host and log
        self._truths: dict[str, LogTruth] = {}  # by log
        self._made: dict[tuple[str, str], str] = {}  # by host and log: the path at which it was made last
        self.cut: dict[str, None] = {}  # logs that may have become shorter on some disk; cleared by the reader

    def of(self, machine: Machine, log: str) -> LogMirror:
        """log: METADATA or a `log_id`."""
        known = self._known.get((machine.host, log))
        if known is not None:
            return known
        mirror = self._known[machine.host, log] = self._new(machine, log)
        return mirror

    def _new(self, machine: Machine, log: str) -> LogMirror:
        name, _, topic_id = log.partition("@")
        mirrors = self._mirrors.setdefault((machine.host, name), {})
        truth = self.truth(log)
        mirrors[log] = LogMirror(
            machine.disk,
            f"{DATA}/{name}",
            _ignore if name.startswith(f"{COMPACTED_TOPIC}-") else partial(truth.on_batch, where=machine.host),
            lambda batch: self.on_written(machine, log, batch),
            topic_id=bytes.fromhex(topic_id) if topic_id else None,
            others=[f"{directory}/{name}" for directory in DIRECTORIES[1:]],
            is_own=partial(is_of_node, machine),
            newest=lambda: self.made_last(machine, log),
            chain_before=partial(self._chain_before, machine, log),
            may_begin_at=partial(self._may_begin, machine, log),
        )
        return mirrors[log]

    def _chain_before(self, machine: Machine, log: str, base: Offset) -> bytes:
        if log.startswith(f"{COMPACTED_TOPIC}-"):
            return b""
        truth = self.truth(log)
        if base > truth.deleted_before and not truth.has_snapshots and self.may_begin_at(machine, log, base):
            truth.deleted_before = base
        return truth.chain_before(base)

    def _may_begin(self, machine: Machine, log: str, base: Offset) -> bool:
        truth = self.truth(log)
        may_be_gone = log.startswith(f"{COMPACTED_TOPIC}-") or truth.has_snapshots or base <= truth.deleted_before
        return may_be_gone or self.may_begin_at(machine, log, base)

    def of_replica(self, machine: Machine, replica: Replica) -> LogMirror:
        return self.of(machine, log_of(replica))

    def made_last(self, machine: Machine, log: str) -> str:
        """The path at which a log was made last, or to which it moved since; "" if nobody knows."""
        return self._made.get((machine.host, log), "")

    def truth(self, log: str) -> LogTruth:
        if log not in self._truths:
            self._truths[log] = LogTruth(log, self._findings)
        return self._truths[log]

    def truths(self) -> list[LogTruth]:
        """Of all logs but those that are compacted."""
        return [truth for log, truth in self._truths.items() if not log.startswith(f"{COMPACTED_TOPIC}-")]

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A machine's disk has finished an operation."""
        if kind == "crash":
            for host, name in self._mirrors:
                if host == machine.host:
                    self._forget(machine.host, name)
            return
        place = place_of(path)
        if place is None:
            return
        directory, name, file = place
        if is_copy(name):  # a complete one counts as the log between the two renames of a move
            if not file and kind == "rename":
                self._note_made(machine, directory, live_name(name))
            if not file or MARK_NAME in file:
                self._forget(machine.host, live_name(name))
            return
        is_made = kind == "rename" and PARTITION_METADATA in file
        if is_made:
            self._note_made(machine, directory, name)
        if name.startswith(f"{COMPACTED_TOPIC}-"):
            return
        if file.endswith(SEGMENT_SUFFIX):
            self._on_segment(machine, kind, directory, name, file)
        elif is_made or (not file and kind in _MOVES):
            self._forget(machine.host, name)

    def _on_segment(self, machine: Machine, kind: str, directory: str, name: str, file: str) -> None:
        if kind == "pwritev":
            if (machine.host, name) not in self._mirrors:
                self._find(machine, name)
            for mirror in self._mirrors.get((machine.host, name), {}).values():
                if mirror.path == f"{directory}/{name}":
                    mirror.on_write(file)
        elif kind in ("truncate", "unlink", "rename", "drop_cached"):
            self._forget(machine.host, name)

    def _note_made(self, machine: Machine, directory: str, name: str) -> None:
        topic_id = topic_id_of(machine.disk, f"{directory}/{name}")
        if topic_id is not None:
            self._made[machine.host, log_id(name, topic_id)] = f"{directory}/{name}"

    def _find(self, machine: Machine, name: str) -> None:
        """Begin to mirror the logs that have this name now."""
        if name == METADATA:
            self.of(machine, METADATA)
        for directory in DIRECTORIES:
            topic_id = topic_id_of(machine.disk, f"{directory}/{name}")
            if topic_id is not None:
                self.of(machine, log_id(name, topic_id))

    def _forget(self, host: str, name: str) -> None:
        for log, mirror in self._mirrors.get((host, name), {}).items():
            mirror.forget()
            self.cut[log] = None


def _ignore(_batch: Batch) -> None:
    """The bytes of a compacted log are nobody's truth."""


def log_of(replica: Replica) -> str:
    return log_id(replica.name, replica.key[0])
