"""What the log directories of the virtual year may hold at a sample, and what they hold.

Each bound follows from the settings of the topics and the broker, and from what was written when. A sample is taken
where nothing is late: every directory is online, and the process runs for longer than a round of each of its tasks.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterable
from math import ceil

from jepsen.sim.machine.page_cache import DirectoryNode, FileNode
from jepsen.soak.gauges import Gauges
from jepsen.soak.year.machine import (
    OPEN_FILES_MAX,
    PATHS,
    PRODUCER_CHECK_MS,
    PRODUCER_EXPIRY_MS,
    Machine,
    Process,
)
from jepsen.soak.year.model import PartitionModel
from jepsen.soak.year.topics import (
    BATCH_BYTES_MAX,
    CLEANER_BACKOFF_MS,
    DAY_MS,
    HOUR_MS,
    INDEX_INTERVAL_BYTES,
    RETENTION_CHECK_MS,
    Kind,
)
from quorumlog_storage.directory.offset_files import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    LOST_OFFSETS,
    RECOVERY_POINTS,
)
from quorumlog_storage.files.names import (
    CUT_SUFFIX,
    DELETE,
    DELETED_SUFFIX,
    FUTURE,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    STRAY,
    TIME_INDEX_SUFFIX,
)
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.offset_index import ENTRY_BYTES
from quorumlog_storage.segment.time_index import TIME_ENTRY_BYTES

SETTLED_MS = 3 * HOUR_MS  # longer than any round of any task
OFFSET_FILES = (RECOVERY_POINTS, LOG_STARTS, LOST_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)
LINE_BYTES = 48  # of an offset file: a topic's name, a partition, an offset
SKEW_MS = 2 * HOUR_MS  # between two clocks that have jumped
DELETE_RECORDS_MS = 3 * DAY_MS  # between two times of DeleteRecords, with high probability
FILES_A_SEGMENT = 5  # .log, .index, .timeindex, .txnindex, .snapshot
SNAPSHOTS_MORE = 1  # than segments: that of the last clean stop
FILES_A_LOG = 5  # partition.metadata, leader-epoch-checkpoint, transaction-index-checkpoint, two snapshots more
REMEMBERED_MS = PRODUCER_EXPIRY_MS + 3 * PRODUCER_CHECK_MS  # so long is a silent producer of an open log, at most
OPEN_CALLS_A_FILE, OPEN_CALLS_A_LOG, OPEN_CALLS_A_DIRECTORY = 8, 60, 60


class PartitionBounds:
    """Of one partition at one moment. written: (virtual time, bytes) of its appends, the oldest first."""

    def __init__(self, model: PartitionModel, written: Iterable[tuple[int, int]], now_ms: int) -> None:
        self._model, self._kind, self._now_ms = model, model.kind, now_ms
        self._written = list(written)

    @property
    def kept_ms(self) -> int:
        """So old may a record be that a policy by time lets go; the largest integer where none does."""
        config = self._kind.parsed
        late_ms = RETENTION_CHECK_MS * 3 + SKEW_MS * 2
        if self._kind.keeps_ms:
            return self._kind.keeps_ms + DELETE_RECORDS_MS + config.segment_ms
        if self._kind.deletes and config.retention_ms >= 0:
            return config.retention_ms + config.segment_ms + late_ms
        return sys.maxsize

    @property
    def bytes(self) -> float:
        """Of the log's batches."""
        config, kind = self._kind.parsed, self._kind
        by_time = self._since(self.kept_ms)
        if kind.deletes and config.retention_bytes >= 0:
            return config.retention_bytes + config.segment_bytes + self._since(RETENTION_CHECK_MS * 3)
        if kind.deletes:
            return by_time
        return self._compacted_bytes(kind)

    def _compacted_bytes(self, kind: Kind) -> float:
        """A batch of its own for each key, tombstones that are kept for a while, and twice the dirty part: what was
        written while it may not be cleaned yet, and what is no large enough part of the log."""
        config = kind.parsed
        young_ms = config.min_compaction_lag_ms + config.segment_ms + CLEANER_BACKOFF_MS * 4 + SKEW_MS
        clean = kind.keys * BATCH_BYTES_MAX + self._since(config.delete_retention_ms + young_ms)
        ratio = min(config.min_cleanable_dirty_ratio, 0.95)
        dirty = min(clean * ratio / (1 - ratio), self._since(config.max_compaction_lag_ms + young_ms))
        return clean + dirty + config.segment_bytes + self._since(young_ms)

    @property
    def segments(self) -> int:
        """By size, by age, and those that a setting made smaller or younger for a while."""
        config = self._kind.parsed
        by_size = ceil(self.bytes / (min(config.segment_bytes, 3_000) - BATCH_BYTES_MAX))
        oldest = self._written[0][0] if self._written else self._now_ms
        age_ms = min(self.kept_ms, self._now_ms - oldest, DAY_MS * 14)
        return by_size + ceil(age_ms / min(config.segment_ms, 6 * HOUR_MS)) + 2

    @property
    def epochs(self) -> int:
        """One for each leadership since the log's first record, and one before it.

        Compaction keeps the epochs of what it takes: whoever follows must find its way by them.
        """
        first = self._model.batches[0].at_ms if self._model.batches else self._now_ms
        if self._kind.compacts:
            first = self._model.made_ms
        return 2 + sum(at >= first for at in self._model.leaderships)

    @property
    def producers(self) -> int:
        """Of a log that is open for longer than a producer is remembered: those that wrote since then, and the one
        whose transaction is open here, however long it is silent: its records would be taken for stable ones."""
        recent = {producer for at, producer in self._model.producers if at >= self._now_ms - REMEMBERED_MS}
        unended = (self._model.open, *(batch.transaction for batch in self._model.maybe))
        return len(recent | {one.producer_id for one in unended if one is not None})

    def _since(self, age_ms: int) -> float:
        return sum(size for at, size in self._written if at >= self._now_ms - age_ms)


class Found:
    """Counted from the simulated disk, without a call to it."""

    def __init__(self, machine: Machine) -> None:
        """future_files: of copies that moves make. futures: the directories of these. strays: directories that are kept
        for the operator, for example one that a stop met before its topic's id was written."""
        self.files = self.bytes = self.leftovers = self.cut = self.future_files = self.strays = 0
        self.futures: list[str] = []
        self.names: dict[str, int] = {}  # of what is on its way out: number of the file or directory
        self.checkpoints: Counter[str] = Counter()
        self.index_bytes: Counter[str] = Counter()  # by suffix
        self.snapshots: Counter[str] = Counter()  # by path of the log
        for path in PATHS:
            directory = machine.disk.root.current[path[1:]]
            assert isinstance(directory, DirectoryNode)
            for name, node in directory.current.items():
                if isinstance(node, FileNode):
                    self.files += 1
                    if name in OFFSET_FILES:
                        self.checkpoints[name] = max(self.checkpoints[name], len(node.current))
                else:
                    self._partition(f"{path}/{name}", node)

    def _partition(self, path: str, directory: DirectoryNode) -> None:
        if path.endswith(f"-{FUTURE}"):
            self.futures.append(path)
            self.future_files += len(directory.current)
            return
        if path.endswith(f"-{STRAY}"):
            self.strays += 1
            return
        if path.endswith(f"-{DELETE}"):
            self.names[path] = directory.number
        for name, node in directory.current.items():
            assert isinstance(node, FileNode)
            if name.endswith(CUT_SUFFIX):
                self.cut += 1
                continue
            self.files += 1
            self.bytes += len(node.current)
            self.snapshots[path] += name.endswith(SNAPSHOT_SUFFIX)
            if name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX)):
                self.index_bytes[name[name.index(".") :]] += len(node.current)
            if name.endswith(DELETED_SUFFIX) or not name.endswith(
                (LOG_SUFFIX, "index", SNAPSHOT_SUFFIX, "checkpoint", "metadata")
            ):
                self.names[f"{path}/{name}"] = node.number


class Sampler:
    """Takes a sample of everything. seen: what was on its way out at the sample before."""

    def __init__(self, gauges: Gauges) -> None:
        self.gauges = gauges
        self._seen: dict[str, int] = {}
        self._gone: list[tuple[str, int]] = []  # at the last sample
        self._open: dict[PartitionModel, tuple[Log, int]] = {}  # virtual time at which it was first seen
        self._written: dict[PartitionModel, list[tuple[int, int]]] = {}
        self._noted: dict[PartitionModel, int] = {}

    def note_writes(self, models: Iterable[PartitionModel]) -> None:
        """Called at least as often as batches leave the models."""
        here = list(models)
        for model in here:
            last = self._noted.get(model, -1)
            new = [batch for batch in model.batches if batch.base > last]
            if new:
                self._written.setdefault(model, []).extend((batch.at_ms, batch.size) for batch in new)
                self._noted[model] = new[-1].base
        self._written = {model: self._written.get(model, []) for model in here}
        self._noted = {model: self._noted.get(model, -1) for model in here}

    def note_logs(self, process: Process, models: Iterable[PartitionModel], now_ms: int) -> None:
        """Called often. Each start, return and move opens a log, and then no producer is known to be silent yet."""
        found = {model: process.plane.registry.replicas.get((model.topic_id, model.index)) for model in models}
        here = {model: replica.log for model, replica in found.items() if replica is not None and replica.log}
        before = self._open
        self._open = {
            model: before[model] if model in before and before[model][0] is log else (log, now_ms)
            for model, log in here.items()
        }

    def sample(self, machine: Machine, models: list[PartitionModel], now_ms: int) -> None:
        process = machine.running
        self.note_writes(models)
        self.note_logs(process, models, now_ms)
        is_settled = now_ms - process.began_ms > SETTLED_MS and len(process.online) == len(PATHS)
        if not is_settled:
            return
        bounds = {model: PartitionBounds(model, self._written[model], now_ms) for model in models}
        logs = {model: _log_of(process, model) for model in models}
        day = now_ms / DAY_MS
        process.loop.forget_done_tasks()
        gc.collect()  # the descriptors of deleted files close with the last object that refers to them
        self._logs(day, bounds, logs)
        self._producers(day, bounds, logs, now_ms)
        self._files(day, machine, bounds, logs)
        self._process(day, machine, process)
        for model, bound in bounds.items():
            oldest = now_ms - min(bound.kept_ms * 2, DAY_MS * 30)
            self._written[model] = [one for one in self._written[model] if one[0] >= oldest]
            while len(model.producers) > 1 and model.producers[0][0] < now_ms - REMEMBERED_MS:
                model.producers.popleft()

    def _logs(
        self,
        day: float,
        bounds: dict[PartitionModel, PartitionBounds],
        logs: dict[PartitionModel, Log],
    ) -> None:
        by_kind: dict[str, list[float]] = {}
        for model, log in logs.items():
            one = by_kind.setdefault(model.kind.name, [0.0, 0.0])
            one[0] += log.size_bytes
            one[1] += bounds[model].bytes
        for name, (value, bound) in by_kind.items():
            self.gauges.sample(day, f"bytes of {name}", value, bound, slack=4_000)
        worst = max(logs, key=lambda model: len(logs[model].segment_bases) / bounds[model].segments)
        self.gauges.sample(
            day, "segments of the fullest log", len(logs[worst].segment_bases), bounds[worst].segments, slack=2
        )
        epochs = [(len(log.epochs.entries), bounds[model].epochs) for model, log in logs.items()]
        self.gauges.sample(day, "epochs of a log", *_fullest(epochs), slack=8)

    def _producers(
        self, day: float, bounds: dict[PartitionModel, PartitionBounds], logs: dict[PartitionModel, Log], now_ms: int
    ) -> None:
        """A log that was just opened has those of a snapshot, which may be old, and of everything behind it."""
        counts = [
            (_producers(log), bounds[model].producers)
            for model, log in logs.items()
            if now_ms - self._open[model][1] > REMEMBERED_MS
        ]
        if counts:
            self.gauges.sample(day, "producers of a log", *_fullest(counts), slack=8)

    def _files(
        self,
        day: float,
        machine: Machine,
        bounds: dict[PartitionModel, PartitionBounds],
        logs: dict[PartitionModel, Log],
    ) -> None:
        found = Found(machine)
        segments = sum(len(log.segment_bases) for log in logs.values())
        on_its_way = len(found.names) * FILES_A_SEGMENT * 8
        files = segments * FILES_A_SEGMENT + len(logs) * FILES_A_LOG + len(PATHS) * 10 + on_its_way
        self.gauges.sample(day, "files", found.files, files, slack=50)
        moving = _moving(machine.running)
        copies = sum(bounds[m].segments * FILES_A_SEGMENT + FILES_A_LOG * 2 for m in bounds if m.name in moving)
        self.gauges.sample(day, "files of moves", found.future_files, copies, slack=50)
        self.gauges.sample(day, "copies that no move fills", max(0, len(found.futures) - len(moving)), 0)
        stale = [name for name, number in found.names.items() if self._seen.get(name) == number]
        self._seen = found.names
        self.gauges.sample(day, "left over for a day", len(stale), 0)
        self.gauges.sample(day, "files of damage that recovery keeps", found.cut, is_level=False)
        self.gauges.sample(day, "directories set aside", found.strays, is_level=False)
        for name in OFFSET_FILES:
            bound = 16 + LINE_BYTES * len(logs)
            self.gauges.sample(
                day, name.removesuffix("-checkpoint"), found.checkpoints[name], bound, unit=" bytes", slack=200
            )
        self._indexes(day, found, logs)
        snapshots = [(found.snapshots[log.path], len(log.segment_bases) + SNAPSHOTS_MORE) for log in logs.values()]
        self.gauges.sample(day, "snapshots of a log", *_fullest(snapshots), slack=4)
        waiting = sum(name.endswith(LOG_SUFFIX + DELETED_SUFFIX) for name in found.names)
        self.gauges.sample(day, "open files", machine.disk.open_files, OPEN_FILES_MAX + waiting)
        gone = machine.disk.open_gone()
        still = [file for file in gone if file in self._gone]  # a reader may go on for file.delete.delay.ms
        self._gone = gone
        self.gauges.sample(day, "open files that are gone", len(still), 0)

    def _indexes(self, day: float, found: Found, logs: dict[PartitionModel, Log]) -> None:
        """One entry for so many bytes of batches; of times one more whenever a segment is closed or a broker stops."""
        entries = sum(log.size_bytes / INDEX_INTERVAL_BYTES + len(log.segment_bases) for log in logs.values())
        at_stops = sum(len(log.segment_bases) for log in logs.values()) * 2
        for suffix, bound in {
            INDEX_SUFFIX: entries * ENTRY_BYTES,
            TIME_INDEX_SUFFIX: (entries + at_stops) * TIME_ENTRY_BYTES,
        }.items():
            self.gauges.sample(day, f"bytes of {suffix}", found.index_bytes[suffix], bound, slack=500)

    def _process(self, day: float, machine: Machine, process: Process) -> None:
        moves = process.plane.moves.under_way()
        self.gauges.sample(day, "tasks", len(process.nursery), process.tasks_at_start + len(moves))
        self.gauges.sample(day, "memory blocks of the whole soak", sys.getallocatedblocks(), slack=20_000)

    def started(self, day: float, process: Process, files: int, scanned_bytes: int) -> None:
        """calls: of the disk, until every log was open."""
        logs = len(process.plane.registry.replicas)
        bound = OPEN_CALLS_A_FILE * files + OPEN_CALLS_A_LOG * logs + OPEN_CALLS_A_DIRECTORY * len(PATHS)
        self.gauges.sample(day, "disk calls to start", process.calls_to_open, bound + scanned_bytes // 60, slack=300)


def _log_of(process: Process, model: PartitionModel) -> Log:
    log = process.plane.registry.find(model.topic_id, model.index).log
    assert log is not None
    return log


def _fullest(counts: list[tuple[int, int]]) -> tuple[int, int]:
    """(count, bound) of the log that is nearest to its bound, or above it."""
    return max(counts, key=lambda one: one[0] - one[1])


def _moving(process: Process) -> set[str]:
    """Names of the partitions that have a copy in another directory: of a move, or of one that waits for its log."""
    found = process.plane.store.futures.by_key.values()
    moves = process.plane.moves.under_way()
    return {f"{one.topic}-{one.index}" for one in moves} | {"{}-{}".format(*one.partition) for one in found}


def _producers(log: Log) -> int:
    return 0 if log.producers is None else len(log.producers.states.entries)
