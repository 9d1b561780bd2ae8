"""The workloads of moves: a log goes from one log directory to another one, and starts find a move half done.

The calls are those of both directories' writers and jobs, in the order in which `quorumlog_broker/moves/` makes them.
Whatever a crash leaves, exactly one of the two copies counts, and it holds all that was acknowledged.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.crash.check import check_log, require
from jepsen.crash.expected import payload
from jepsen.crash.process import CONFIG, DATA, FREE_STEP_BYTES
from jepsen.crash.world import BATCH_RECORDS, FIRST_MS, PRODUCER_ID, World
from quorumlog.ids import Offset
from quorumlog.records import Record, encode_batch, headers
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.moves import promotion
from quorumlog_storage.moves.future_log import FutureLog, future_name
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
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches

M, LINE = "m", ("m", 0)
OTHER = "/other"
SOURCE_ID, TARGET_ID = bytes([101]) * 16, bytes([102]) * 16
NAME = future_name(LINE, bytes([7]) * 16)
BATCHES = 7
COPY_BYTES = 300
LIMIT = 1 << 20


class Moving:
    """Both log directories of one process, and what lies in them."""

    def __init__(self, world: World) -> None:
        disk = world.process.disk
        self.world = world
        for path in (DATA, OTHER):
            disk.disk.sync_directory(path)  # opening a log directory does this: jepsen/crash/process.py
        self.source, self.target = PartitionDirectories(disk, DATA), PartitionDirectories(disk, OTHER)
        self.future: FutureLog | None = None

    @property
    def held(self) -> PartitionLog:
        return self.world.process.logs[M]

    def open(self) -> None:
        """As a broker starts: what is found decides which copy is the log (quorumlog_storage/moves/steps.py)."""
        world, topic_id = self.world, self.world.known[M]
        found = [(here, here.find()) for here in (self.source, self.target)]
        places = [here for here, listed in found if (topic_id, 0) in listed.partitions]
        require(len(places) <= 1, "one copy", "the partition is in both directories")
        for here, listed in found:
            for name in listed.leftovers:
                while not here.free(name, FREE_STEP_BYTES):
                    pass
            for partition in listed.nameless:  # no copy of it was ever complete
                here.move_away(partition, bytes([8]) * 16, "stray")
        for _, name in found[1][1].bad_futures:
            self.target.disk.rename(f"{OTHER}/{name}", f"{OTHER}/{name.replace('-future', '-delete')}")
            self.target.disk.sync_directory(OTHER)
        listed_future = found[1][1].futures.get((topic_id, 0))
        if listed_future is not None:
            future, mark = listed_future
            ids = {SOURCE_ID, TARGET_ID}
            fate = fate_of(current_is_found=bool(places), mark=mark, online=ids, any_offline=False)
            require(fate in (Fate.PROMOTE, Fate.CONTINUE), "one copy", f"no log, and a future log to be {fate.value}")
            if fate is Fate.PROMOTE:
                promotion.rename_promoted(self.target, LINE, future)
                places = [self.target]
            else:
                log = FutureLog.load(self.target, LINE, topic_id, future, CONFIG)
                self.future = FutureLog.adopt(self.target, LINE, topic_id, future, log)
        require(bool(places), "one copy", "neither directory holds the partition")
        world.process.logs[M] = PartitionLog.open(places[0], LINE, topic_id, CONFIG)

    # --- the source ---

    def append(self, count: int) -> None:
        world, log = self.world, self.held.log
        for _ in range(count):
            at = log.end_offset
            world.expected[M].sent(at, BATCH_RECORDS, world.epoch)
            log.append([_batch(world, at)])
            log.sync()
            world.expected[M].acknowledged(at, BATCH_RECORDS, world.epoch)

    def append_unsynced(self, count: int) -> None:
        world, log = self.world, self.held.log
        for _ in range(count):
            world.expected[M].sent(log.end_offset, BATCH_RECORDS, world.epoch)
            log.append([_batch(world, log.end_offset)])

    def truncate(self, offset: Offset) -> None:
        expected = self.world.expected[M]
        expected.cut_asked(offset // BATCH_RECORDS * BATCH_RECORDS)
        expected.cut_done(self.held.truncate_to(offset))
        self.world.epoch += 1

    def raise_start(self, offset: Offset) -> None:
        expected = self.world.expected[M]
        expected.start_asked(offset)
        self.held.raise_start(offset)
        expected.start_done(offset)

    # --- the mover ---

    def begin(self) -> None:
        self.future = FutureLog.create(self.target, LINE, self.held.topic_id, NAME, CONFIG, self.held.log.start_offset)

    def copy(self, steps: int = 1_000) -> None:
        """At most so many steps."""
        future = self.future
        assert future is not None
        for _ in range(steps):
            match next_step(span_of(self.held.log), span_of(future.log)):
                case Read(offset):
                    future.append(promotion.copied_batches(self.held.log, offset, COPY_BYTES))
                case Cut(offset):
                    future.cut(offset)
                case Restart(offset):
                    future.restart_at(offset)
                case RaiseStart(offset):
                    future.raise_start(offset)
                case StartOver(_):
                    require(False, "move", "a source never starts earlier than its copy here")
                case CaughtUp():
                    return

    def promote(self) -> None:
        future, source, world = self.future, self.held, self.world
        assert future is not None
        future.note(source.log.end_offset, source.first_dirty)
        frozen = promotion.freeze(source)
        promotion.complete(future, source.log, frozen, SOURCE_ID, LIMIT)
        name = promotion.leave(source, bytes([9]) * 16)
        log = promotion.rename_in(future, CONFIG, frozen)
        world.process.logs[M] = promotion.take_over(future, source.topic_id, log, frozen)
        self.future = None
        while not self.source.free(name, FREE_STEP_BYTES):
            pass


def _batch(world: World, at: Offset) -> StoredBatch:
    tag = world.expected[M].tag
    records = [Record(n, FIRST_MS + at + n, None, payload(tag, at + n, world.epoch), ()) for n in range(BATCH_RECORDS)]
    data = encode_batch(records, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=at)
    (made,) = stamped_batches(data, headers(data), at, world.epoch)
    return made


# --- the workloads ---


def _filled(world: World) -> Moving:
    world.format()
    disk = world.process.disk
    disk.make_directory(OTHER)
    disk.sync_directory("/")
    world.know(M, 1)
    moving = Moving(world)
    world.process.logs[M] = PartitionLog.create(moving.source, LINE, world.known[M], CONFIG)
    moving.append(BATCHES)
    moving.raise_start(1)
    return moving


def filled(world: World, _rng: random.Random) -> None:
    """The process goes on with what it has open."""
    _filled(world)
    world.end(None)


def move(world: World) -> None:
    """From the first name of the copy to the last byte of the source, with all that happens to a source meanwhile."""
    moving = Moving(world)
    moving.open()
    moving.begin()
    moving.copy(3)
    moving.append(2)
    moving.copy()
    moving.truncate(moving.held.log.end_offset - 4)
    moving.append(2)
    moving.copy()
    moving.raise_start(5)
    moving.copy()
    moving.append(1)
    moving.raise_start(7)
    moving.copy()
    moving.promote()
    moving.append(2)


def copy_past_the_start(world: World) -> None:
    """Everything that is copied was deleted meanwhile, and the topic's new records follow; then it is cancelled."""
    moving = Moving(world)
    moving.open()
    moving.begin()
    moving.copy(2)
    moving.append(3)
    moving.raise_start(moving.held.log.end_offset - 1)
    moving.copy()
    future = moving.future
    assert future is not None
    name = future.delete(bytes([6]) * 16)
    while not moving.target.free(name, FREE_STEP_BYTES):
        pass
    future.here.forget_offsets(LINE)


def half_copied(world: World, rng: random.Random) -> None:
    """The process ends in the middle of the copy; its last records are in memory only, on both sides."""
    moving = _filled(world)
    moving.begin()
    moving.copy(3)
    moving.append_unsynced(1)
    future = moving.future
    assert future is not None
    future.log.append(promotion.copied_batches(moving.held.log, future.log.end_offset, COPY_BYTES), gaps=True)
    if rng.random() < 0.5:
        future.close()
    world.end(rng if rng.random() < 0.7 else None)


def go_on_with_a_move(world: World) -> None:
    moving = Moving(world)
    moving.open()
    if moving.future is None:
        return
    moving.copy()
    moving.promote()


def _stopped_in_the_exchange(world: World, *, has_left: bool) -> None:
    moving = _filled(world)
    moving.begin()
    moving.copy()
    future, source = moving.future, moving.held
    assert future is not None
    future.note(source.log.end_offset)
    frozen = promotion.freeze(source)
    promotion.complete(future, source.log, frozen, SOURCE_ID, LIMIT)
    if has_left:
        promotion.leave(source, bytes([9]) * 16)
    world.end(None)


def marked(world: World, _rng: random.Random) -> None:
    """The copy has its mark, and the source is still there."""
    _stopped_in_the_exchange(world, has_left=False)


def left(world: World, _rng: random.Random) -> None:
    """The source has left, and the copy has not its live name yet."""
    _stopped_in_the_exchange(world, has_left=True)


def start(world: World) -> None:
    Moving(world).open()


def check(world: World) -> None:
    expected, log = world.expected[M], world.process.logs[M].log
    records = check_log(log, expected)
    expected.seen(log.start_offset, records)
    require(log.synced_end == log.end_offset, "synced end", f"{log.path} ends at {log.end_offset}")
    for offset, epoch in records.items():
        require(log.epochs.epoch_for(offset) == epoch, "epoch", f"{log.path} offset {offset}: {log.epochs.entries}")
    if records:
        producer = log.producers.entry(PRODUCER_ID) if log.producers is not None else None
        last = None if producer is None else producer.last_sequence
        require(last == log.end_offset - 1, "producer", f"{log.path} ends at {log.end_offset}, and it says {last}")


def go_on(world: World) -> None:
    """What is acknowledged where the log lies now."""
    log = world.process.logs[M].log
    for _ in range(2):
        at = log.end_offset
        world.expected[M].sent(at, BATCH_RECORDS, world.epoch)
        log.append([_batch(world, at)])
        log.sync()
        world.expected[M].acknowledged(at, BATCH_RECORDS, world.epoch)


ROWS: tuple[tuple[str, Callable[[World], object], Callable[[World, random.Random], object]], ...] = (
    ("move", move, filled),
    ("move past the start and cancel", copy_past_the_start, filled),
    ("start in the middle of a copy", go_on_with_a_move, half_copied),
    ("start with a complete copy beside its source", go_on_with_a_move, marked),
    ("start where the source has left", start, left),
)  # name, change, preparation
