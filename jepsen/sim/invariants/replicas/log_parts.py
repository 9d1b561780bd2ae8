"""What an open log keeps beside its batches agrees with them: the epochs in memory, and the indexes in memory.

- epochs-equal-log: each epoch starts where its first batch begins, and each batch has the epoch that the log tells for
  its offset. Only the last epoch may have no batch: then it starts at the log's end.
- index-equals-log: each entry names the last offset of the batch that begins at its position. So a look-up by the index
  finds what a scan from the segment's first byte finds.
- time-index-equals-log: each entry names the last offset of a batch, and that batch has the entry's timestamp.

What was checked is checked again only where the epochs were replaced or the index was cut.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.log_mirror import LogMirror
from jepsen.sim.truth.mirrors import Mirrors
from quorumlog.ids import Offset
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.epochs import EpochStart
from quorumlog_storage.segment.segment import Segment

IsRotten = Callable[[Machine, Segment], bool]
_Columns = tuple["array[int]", "array[int]"]  # relative offsets and positions of an index


@dataclass(slots=True)
class _Checked:
    """epochs: the entries that were compared. end: batches before it were. indexes: by base offset of the segment, the
    columns and how many entries of them were."""

    log: Log
    epochs: tuple[EpochStart, ...] | None = None
    end: Offset = 0
    indexes: dict[Offset, tuple[_Columns, int]] = field(default_factory=dict)
    times: dict[Offset, tuple[_Columns, int]] = field(default_factory=dict)  # likewise


class LogPartsInvariants(Invariant):
    """index_entries: how many were compared, of both indexes."""

    def __init__(
        self, mirrors: Mirrors, findings: Findings, is_rotten: IsRotten = lambda _machine, _segment: False
    ) -> None:
        self._mirrors, self._findings, self._is_rotten = mirrors, findings, is_rotten
        self._checked: dict[str, dict[PartitionKey, _Checked]] = {}  # by host
        self.index_entries = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"index entries checked": self.index_entries}

    def after(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process."""
        of_host = self._checked.setdefault(machine.host, {})
        for replica in changed:
            log = replica.log
            if log is None or log.failure is not None:
                continue
            done = of_host.get(replica.key)
            if done is None or done.log is not log:
                done = of_host[replica.key] = _Checked(log)
            if done.epochs is log.epochs.entries and done.end == log.end_offset:
                continue
            where = f"{replica.name} on {machine.host}, life {machine.life}"
            mirror = self._mirrors.of_replica(machine, replica)
            self._check_epochs(where, mirror, log, done)
            self._check_indexes(machine, where, mirror, log, done)

    # --- epochs ---

    def _check_epochs(self, where: str, mirror: LogMirror, log: Log, done: _Checked) -> None:
        if done.epochs is not log.epochs.entries:
            done.epochs, done.end = log.epochs.entries, min(done.end, log.start_offset)
            for entry in log.epochs.entries:
                if not _starts_there(mirror, log, entry):
                    self._findings.broken("epochs-equal-log", f"{where}: no batch of {tuple(entry)} begins there")
        for batch in mirror.batches_between(max(done.end, log.start_offset), log.end_offset):
            told = log.epochs.epoch_for(max(batch.base, log.start_offset))
            if told != batch.epoch:
                what = f"[{batch.base}, {batch.end}) has epoch {batch.epoch}"
                self._findings.broken("epochs-equal-log", f"{where}: {what}, the log tells {told}")
        done.end = log.end_offset

    # --- indexes ---

    def _check_indexes(self, machine: Machine, where: str, mirror: LogMirror, log: Log, done: _Checked) -> None:
        segments = log.view.segments
        for segment in segments:
            index = segment.indexes.offsets.slot.get(None)  # in memory, or None: an observer reads no disk
            if index is None or self._is_rotten(machine, segment):
                continue
            columns = index._columns
            known = done.indexes.get(segment.base_offset)
            first = known[1] if known is not None and known[0] is columns else 0
            if first < len(columns[0]):
                self._check_entries(where, mirror, segment, columns, first)
            done.indexes[segment.base_offset] = (columns, len(columns[0]))
            self._check_times(where, mirror, segment, done)
        if len(done.indexes) > len(segments):
            bases = [segment.base_offset for segment in segments]
            done.indexes = {base: done.indexes[base] for base in bases if base in done.indexes}
            done.times = {base: done.times[base] for base in bases if base in done.times}

    def _check_entries(self, where: str, mirror: LogMirror, segment: Segment, columns: _Columns, first: int) -> None:
        file = segment.log.path.rpartition("/")[2]
        for relative, position in zip(columns[0][first:], columns[1][first:], strict=True):
            self.index_entries += 1
            end = segment.base_offset + relative + 1
            batch = mirror.batch_before(end)
            if batch is None or (batch.end, batch.start, batch.file) != (end, position, file):
                entry = f"the index of {file} has offset {end - 1} at byte {position}"
                self._findings.broken("index-equals-log", f"{where}: {entry}, the log has {batch}")

    def _check_times(self, where: str, mirror: LogMirror, segment: Segment, done: _Checked) -> None:
        index = segment.indexes.times.slot.get(None)
        if index is None:
            return
        columns = index._columns
        known = done.times.get(segment.base_offset)
        first = known[1] if known is not None and known[0] is columns else 0
        for timestamp, relative in zip(columns[0][first:], columns[1][first:], strict=True):
            self.index_entries += 1
            end = segment.base_offset + relative + 1
            batch = mirror.batch_before(end)
            if batch is None or (batch.end, batch.max_timestamp) != (end, timestamp):
                entry = f"the time index of segment {segment.base_offset} has time {timestamp} at offset {end - 1}"
                self._findings.broken("time-index-equals-log", f"{where}: {entry}, the log has {batch}")
        done.times[segment.base_offset] = (columns, len(columns[0]))


def _starts_there(mirror: LogMirror, log: Log, entry: EpochStart) -> bool:
    epoch, start = entry
    if start >= log.end_offset:
        return entry is log.epochs.entries[-1] and start == log.end_offset
    batch = mirror.batch_at(start)
    if batch is None or batch.epoch != epoch:
        return False
    if start <= log.start_offset:
        return True
    before = mirror.batch_before(start)
    return batch.base == start and (before is None or before.epoch < epoch)
