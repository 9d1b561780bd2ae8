"""One process of a node on a struck disk: it opens its log directory as production does, and works in turns.

What this does by itself of what a broker does: it knows from the metadata which topics there are. A directory of
another topic id is set aside, a deletion that was begun is finished, and what the metadata names is opened or created.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from jepsen.crash.instant_worker import InstantWorker
from jepsen.crash.struck_disk import StruckDisk
from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Offset, Uuid
from quorumlog_quorum.disk.metadata_directory import MetadataDirectory
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY, MetadataLog
from quorumlog_quorum.raft import QuorumState
from quorumlog_quorum.snapshots.opening import OpenedSnapshots
from quorumlog_storage.directory.directory import LockedDirectory
from quorumlog_storage.directory.partition_directories import FoundPartitions, PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.names import STRAY
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import Generation
from quorumlog_storage.writer.writer import CallJob, DirectoryWriter, Job, Outcome

DATA = "/data"
SEGMENT_BYTES = 580  # three batches
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, index_interval_bytes=100, remembers_producers=True, preallocate=True)
LAZY = "lazy"  # the topic that asks for no sync
LAZY_CONFIG = replace(CONFIG, durable=False)
METADATA_CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, index_interval_bytes=100)
FREE_STEP_BYTES = 300
ASIDE = bytes([7]) * 16  # in the names of directories that are set aside

T = TypeVar("T")


class Process:
    """`open` begins it. A turn that fails raises DirectoryOffline; what is outside of a turn raises DiskError."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = StruckDisk(disk)
        self.generation = Generation(DATA)
        self.logs: dict[str, PartitionLog] = {}  # by topic; each has one partition
        self.noted: dict[str, Offset] = {}  # recovery points, as this process found them, of logs that were there
        self.metadata: MetadataLog | None = None
        self.metadata_log: Log | None = None
        self.quorum_state = QuorumState()
        self.snapshots: OpenedSnapshots | None = None

    def open(self, known: Mapping[str, Uuid]) -> None:
        """known: topic ids by topic, as the metadata has them."""
        self.open_directory()
        self.call(lambda: self._open_logs(known))
        self.open_metadata()

    def open_directory(self) -> None:
        """Without what is in it."""
        self.directory = LockedDirectory.open(self.disk, DATA)
        self.partitions = PartitionDirectories(self.disk, DATA, self.directory.clean_shutdown is not None)
        self.partitions.on_broken_log = self.generation.fail
        self.writer = DirectoryWriter(DATA, self.generation)

    def _open_logs(self, known: Mapping[str, Uuid]) -> None:
        found = self.find(known)
        for topic, topic_id in known.items():
            if (topic_id, 0) in found.partitions:
                self.noted[topic] = self.partitions.recovery_points.get((topic, 0))
            self.logs[topic] = PartitionLog.open_or_create(self.partitions, (topic, 0), topic_id, config_of(topic))

    def find(self, known: Mapping[str, Uuid]) -> FoundPartitions:
        """What the directory holds, after what is not `known` has left it."""
        found = self.partitions.find()
        for partition in found.nameless:
            self.partitions.move_away(partition, ASIDE, STRAY)
        for (topic_id, index), topic in found.partitions.items():
            if known.get(topic) != topic_id:
                self.partitions.move_away((topic, index), ASIDE, STRAY)
        for name in found.leftovers:
            while not self.partitions.free(name, FREE_STEP_BYTES):
                pass
        return found

    def open_metadata(self) -> None:
        path = f"{DATA}/{METADATA_DIRECTORY}"
        worker = InstantWorker(DirectoryWriter(path, self.generation))
        self.metadata_directory = MetadataDirectory(
            worker=worker, disk=self.disk, log_config=METADATA_CONFIG, clean=self.partitions.clean
        )
        opened = on_loop(self.metadata_directory.open())
        self.metadata_log, self.quorum_state = opened.log, opened.state
        self.snapshots = opened.snapshots
        self.metadata = MetadataLog(opened.checkpointed, worker, _raise, StoppedClock(), starts=opened.starts)

    def turn(self, jobs: Sequence[Job]) -> list[Outcome]:
        """One turn with its syncs. Raises DirectoryOffline if any job met it; what is acknowledged had no error."""
        self.writer.write_phase(jobs)
        outcomes = self.writer.sync_phase()
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        return outcomes

    def call(self, work: Callable[[], T], logs: tuple[Log, ...] = ()) -> T:
        (outcome,) = self.turn([CallJob(work, logs)])
        result: T = outcome.value
        return result

    def all_logs(self) -> dict[str, Log]:
        """By topic; the metadata log by the name of its directory."""
        logs = {topic: held.log for topic, held in self.logs.items()}
        return logs if self.metadata_log is None else {**logs, METADATA_DIRECTORY: self.metadata_log}


def config_of(topic: str) -> LogConfig:
    return LAZY_CONFIG if topic == LAZY else CONFIG


def on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run to its end what a node does on its loop."""
    return _loop().run_until_complete(work)


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """One for all processes: to make one takes longer than to open a log. Nothing waits in it between two uses."""
    return asyncio.new_event_loop()


class StoppedClock:
    """Nothing that is swept here waits for time."""

    def now_ms(self) -> int:
        return 0

    def wall_ms(self) -> int:
        return 0


def _raise(error: Exception) -> None:
    """A node stops where its metadata log fails."""
    raise error
