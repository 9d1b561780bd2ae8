"""A partition's log on a simulated disk, over several processes: what holds after every start of one."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

from storage_samples import batch, disk_with_data, read_all

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Offset, Uuid
from quorumlog_storage.directory.log_checkpoints import checkpoint_high_watermarks, checkpoint_logs
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.names import STRAY
from quorumlog_storage.segment.log_config import LogConfig

T, OTHER = ("t", 0), ("u", 0)
FIRST, SECOND, NEIGHBOUR = bytes([1]) * 16, bytes([2]) * 16, bytes([3]) * 16  # topic ids
UNIQUE = bytes([9]) * 16
CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100, remembers_producers=True)
RECORDS_IN_A_BATCH = 3
BATCHES = 8
END = BATCHES * RECORDS_IN_A_BATCH


def values(base: Offset, text: str = "old") -> list[bytes]:
    return [f"{text}-{base + number}".encode() for number in range(RECORDS_IN_A_BATCH)]


_IDS = itertools.count(1)


def fresh_id() -> Uuid:
    """For a name that no start before has given: a directory is never renamed over one that holds something."""
    return next(_IDS).to_bytes(16)


@dataclass
class World:
    """One process on a disk. `log` is the partition that the operation changes."""

    disk: SimDisk = field(default_factory=disk_with_data)
    directories: PartitionDirectories = field(init=False)
    log: PartitionLog = field(init=False)
    neighbour: PartitionLog = field(init=False)

    def __post_init__(self) -> None:
        self.disk.sync_directory("/data")  # what opening a log directory does
        self.directories = PartitionDirectories(self.disk, "/data")

    def create(self, topic_id: Uuid = FIRST) -> None:
        self.log = PartitionLog.create(self.directories, T, topic_id, CONFIG)

    def fill(self, batches: int = BATCHES, text: str = "old", epoch: int = 1) -> None:
        log = self.log.log
        for _ in range(batches):
            log.append([batch(log.end_offset, values(log.end_offset, text), epoch)])
        log.sync()

    def checkpoint(self, high_watermark: Offset) -> None:
        checkpoint_high_watermarks(self.directories, {self.log: high_watermark})
        checkpoint_logs(self.directories, [self.log])

    def restarted(self, topic_id: Uuid) -> World:
        """The next process, whose metadata knows `t-0` as `topic_id`, and the neighbour."""
        world = World(self.disk)
        found = world.directories.find()
        for partition in found.nameless:
            world.directories.move_away(partition, fresh_id(), STRAY)
        for (found_id, index), topic in found.partitions.items():
            if found_id not in (topic_id, NEIGHBOUR):
                world.directories.move_away((topic, index), fresh_id(), STRAY)
        noted_point = world.directories.recovery_points.get(T)
        was_there = (topic_id, 0) in found.partitions
        world.log = PartitionLog.open_or_create(world.directories, T, topic_id, CONFIG)
        if was_there:
            assert noted_point <= world.log.log.synced_end, "a recovery point above what is synced"
        world.neighbour = PartitionLog.open(world.directories, OTHER, NEIGHBOUR, CONFIG)
        return world

    @property
    def span(self) -> tuple[Offset, Offset]:
        return self.log.log.start_offset, self.log.log.end_offset

    def records(self) -> dict[Offset, bytes]:
        return {offset: value for offset, _, value in read_all(self.log.log)}

    def check(self) -> None:
        """What holds after every start."""
        start, end = self.span
        assert self.log.high_watermark <= end == self.log.log.synced_end
        assert self.directories.recovery_points.get(T) <= end
        assert self.directories.high_watermarks.get(T) <= end
        assert self.directories.log_starts.get(T) <= start
        assert list(self.records()) == list(range(start, end)), "a hole"
        neighbour = self.neighbour
        assert neighbour.log.start_offset == 1 and neighbour.high_watermark == 2
        assert self.directories.recovery_points.get(OTHER) == neighbour.log.end_offset == 3

    def goes_on_durably(self, topic_id: Uuid) -> None:
        """What is acknowledged now is there after the next power cut, and nothing else."""
        start, end = self.span
        before = self.records()
        self.fill(batches=2, text="new", epoch=5)
        self.disk.crash(random.Random(end))
        again = self.restarted(topic_id)
        again.check()
        new = {base + n: value for base in (end, end + 3) for n, value in enumerate(values(base, "new"))}
        assert again.span == (start, end + 6)
        assert again.records() == before | new


def a_world() -> World:
    """A log of several segments, deleted up to the middle of a batch, its offsets noted; and a neighbour."""
    world = World()
    world.log = PartitionLog.create(world.directories, OTHER, NEIGHBOUR, CONFIG)
    world.fill(batches=1)
    world.log.raise_start(1)
    world.checkpoint(high_watermark=2)
    world.create()
    world.fill()
    world.log.raise_start(7)
    world.checkpoint(high_watermark=END - 2)
    assert len(world.log.log.segment_bases) > 2
    return world


OLD = {base + n: value for base in range(0, END, 3) for n, value in enumerate(values(base))}


def old_records(start: Offset, end: Offset) -> dict[Offset, bytes]:
    return {offset: value for offset, value in OLD.items() if start <= offset < end}
