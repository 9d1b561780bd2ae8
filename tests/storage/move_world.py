"""A move between two log directories, driven by hand: the production calls of both writers, in the mover's order."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage_samples import batch, read_all

from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import Epoch, Offset
from quorumlog_storage.directory.mark import PromotionMark
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.names import DELETE
from quorumlog_storage.moves import promotion
from quorumlog_storage.moves.future_log import FutureLog, delete_future, future_name
from quorumlog_storage.moves.steps import (
    CaughtUp,
    Cut,
    Fate,
    RaiseStart,
    Read,
    Restart,
    StartOver,
    fate_of,
    next_step,
    span_of,
)
from quorumlog_storage.segment.log_config import LogConfig

T = ("t", 0)
TOPIC = bytes([1]) * 16
SOURCE, TARGET = bytes([101]) * 16, bytes([102]) * 16  # directory ids
NAME = future_name(T, bytes([7]) * 16)
CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100, remembers_producers=True)
BATCH = 3  # records in a batch
MANY = 1 << 30


def two_directories() -> SimDisk:
    disk = SimDisk(sector_bytes=48)
    for path in ("/data", "/other"):
        disk.make_directory(path)
        disk.sync_directory(path)
    disk.sync_directory("/")
    return disk


@dataclass
class MoveWorld:
    """One process. log: where the partition is served from; None before `open`."""

    disk: SimDisk = field(default_factory=two_directories)
    source: PartitionDirectories = field(init=False)
    target: PartitionDirectories = field(init=False)
    log: PartitionLog | None = field(default=None, init=False)
    future: FutureLog | None = field(default=None, init=False)
    epoch: Epoch = 1

    def __post_init__(self) -> None:
        for path in ("/data", "/other"):
            self.disk.sync_directory(path)  # what opening a log directory does
        self.source = PartitionDirectories(self.disk, "/data")
        self.target = PartitionDirectories(self.disk, "/other")

    @property
    def held(self) -> PartitionLog:
        assert self.log is not None
        return self.log

    @property
    def copy(self) -> FutureLog:
        assert self.future is not None
        return self.future

    def create(self) -> None:
        self.log = PartitionLog.create(self.source, T, TOPIC, CONFIG)

    def fill(self, batches: int, text: str = "r") -> None:
        log = self.held.log
        for _ in range(batches):
            base = log.end_offset
            log.append([batch(base, [f"{text}-{base + n}".encode() for n in range(BATCH)], self.epoch)])
        log.sync()

    def records(self) -> list[tuple[Offset, Epoch, bytes]]:
        return read_all(self.held.log)

    # --- the mover ---

    def begin(self) -> None:
        self.future = FutureLog.create(self.target, T, TOPIC, NAME, CONFIG, self.held.log.start_offset)

    def step(self, max_bytes: int = 200) -> bool:
        """One step. False once there is nothing to do."""
        future, log = self.copy, self.held.log
        match next_step(span_of(log), span_of(future.log)):
            case StartOver(offset):
                name = future.delete(bytes([8]) * 16)
                while not self.target.free(name, MANY):
                    pass
                self.future = FutureLog.create(self.target, T, TOPIC, NAME, CONFIG, offset)
            case Restart(offset):
                future.restart_at(offset)
            case Cut(offset):
                future.cut(offset)
            case RaiseStart(offset):
                future.raise_start(offset)
            case Read(offset):
                future.append(promotion.copied_batches(log, offset, max_bytes))
            case CaughtUp():
                return False
        return True

    def catch_up(self) -> None:
        for _ in range(1_000):
            if not self.step():
                return
        raise AssertionError("the copy never catches up")

    def note(self) -> None:
        self.copy.note(self.held.log.end_offset, self.held.first_dirty)

    def promote(self) -> None:
        future, source = self.copy, self.held
        frozen = promotion.freeze(source)
        promotion.complete(future, source.log, frozen, SOURCE, MANY)
        promotion.leave(source, bytes([9]) * 16)
        log = promotion.rename_in(future, CONFIG, frozen)
        self.log = promotion.take_over(future, TOPIC, log, frozen)
        self.future = None

    def move(self) -> None:
        self.begin()
        self.catch_up()
        self.note()
        self.promote()

    # --- the next process ---

    def restarted(self) -> MoveWorld:
        """As a broker starts: what is found decides which of the copies is the log."""
        world = MoveWorld(self.disk, epoch=self.epoch)
        source, target = world.source.find(), world.target.find()
        places = [
            one for one, found in ((world.source, source), (world.target, target)) if (TOPIC, 0) in found.partitions
        ]
        assert len(places) <= 1, "the partition is in both directories"
        for partition, name in target.bad_futures:
            delete_future(world.target, partition, name, bytes([6]) * 16)
        future = target.futures.get((TOPIC, 0))
        if future is not None:
            name, mark = future
            assert mark is None or mark == PromotionMark(*T, SOURCE, mark.end_offset)
            fate = fate_of(current_is_found=bool(places), mark=mark, online={SOURCE, TARGET}, any_offline=False)
            if fate is Fate.PROMOTE:
                promotion.rename_promoted(world.target, T, name)
                places = [world.target]
            elif fate is Fate.CONTINUE:
                log = FutureLog.load(world.target, T, TOPIC, name, CONFIG)
                world.future = FutureLog.adopt(world.target, T, TOPIC, name, log)
            else:
                world.target.move_away(T, bytes([5]) * 16, DELETE)
        assert len(places) == 1, "no copy counts"
        world.log = PartitionLog.open(places[0], T, TOPIC, CONFIG)
        return world

    @property
    def is_moved(self) -> bool:
        return self.held.log.path == "/other/t-0"
