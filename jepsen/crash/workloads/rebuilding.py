"""The workloads of wrong indexes: a look-up, an opening or the background check builds them again and saves them.

An index is a hint. Whatever its file holds, and wherever the rebuild or its saving is stopped, each look-up by offset
and by time answers what the records say; and once all was looked up and a checkpoint came round, no file is wrong.
"""

from __future__ import annotations

import random
from functools import partial
from struct import Struct

from jepsen.crash.check import check, require
from jepsen.crash.process import DATA
from jepsen.crash.world import FIRST_MS, World
from quorumlog.records import BatchHeader, headers
from quorumlog.records.format.batch import BATCH_OVERHEAD
from quorumlog_storage.checks.log_check import LogCheck, mend
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.files.disk import name_of
from quorumlog_storage.files.names import TIME_INDEX_SUFFIX, index_name, partition_directory, time_index_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.log.time_lookup import first_since
from quorumlog_storage.segment.offset_index import ENTRY_BYTES

T, U = "t", "u"
_OFFSET_ENTRY, _TIME_ENTRY = Struct(">ii"), Struct(">qi")  # Kafka's `OffsetIndex` and `TimeIndex`
SLICE_BYTES = BATCH_OVERHEAD  # less than a batch
TIME_ENTRY_BYTES = _TIME_ENTRY.size


def _stopped(world: World) -> list[int]:
    """The base offsets of the segments of a log that was closed. No process runs."""
    world.append({T: 7}, batches_a_job=7)
    bases = list(world.log(T).segment_bases)
    assert len(bases) > 4
    world.stop()
    world.end(None)
    return bases


def wrong(world: World, _: random.Random) -> None:
    """Entries that can be decoded and are not true: each segment has another one."""
    bases = _stopped(world)
    for number, base in enumerate(bases):
        offsets, times = _path(index_name(base)), _path(time_index_name(base))
        if number % 3 != 1 and world.disk.size_of(offsets):
            _overwrite(world, offsets, ENTRY_BYTES - 1, 1)  # a position inside a batch
        if number % 3 != 0 and world.disk.size_of(times):
            _overwrite(world, times, TIME_ENTRY_BYTES - 1, 1)  # an offset inside a batch
    world.open()


def wrong_above_a_start(world: World, rng: random.Random) -> None:
    """The first segment has gone, so that only a snapshot knows the producers where the next one begins."""
    world.append({T: 3}, batches_a_job=3)
    world.expire(T, world.log(T).segment_bases[1])
    wrong(world, rng)


def check_in_use(world: World) -> None:
    """The background check of a log: what is wrong is replaced; the log goes on and closes."""
    log = world.log(T)
    check = LogCheck(log, SLICE_BYTES)
    while (step := log.look_up(check.step)) is not None:
        if step.outcome is not None and step.outcome.faults:
            world.process.call(partial(mend, log, check.cuts, step.outcome))
    world.append({T: 2})
    world.stop()


def broken(world: World, rng: random.Random) -> None:
    """Files that are gone, emptied or torn, of a clean stop: the opening notices each."""
    bases = _stopped(world)
    for number, base in enumerate(bases):
        for path in (_path(index_name(base)), _path(time_index_name(base))):
            damage = (number + rng.randrange(2)) % 4
            if damage == 0:
                world.disk.unlink(path)
            elif damage < 3:
                world.disk.open(path).truncate((0, 5)[damage - 1])
    world.disk.sync_directory(f"{DATA}/{partition_directory(T, 0)}")


def look_up(world: World) -> None:
    """In each segment, by offset and by time; the checkpoint saves what was built again; the log goes on and closes."""
    _touch(world.log(T))
    world.checkpoint({T: world.log(T).end_offset, U: 2})
    world.append({T: 2})
    world.stop()


def _touch(log: Log) -> None:
    for last in [base - 1 for base in log.segment_bases[1:]]:
        log.read(last, 1, upper_bound=log.end_offset)
        log.look_up(lambda view, time=FIRST_MS + last: first_since(view, view.start_offset, time, view.end_offset))  # type: ignore[misc]


def open_and_look_up(world: World) -> None:
    world.open()
    look_up(world)


def go_on(world: World) -> None:
    """Appends that roll; nothing is saved that a look-up has not found."""
    _look_everything_up(world)
    world.append({T: 4, U: 1})
    world.checkpoint({T: world.log(T).end_offset, U: 2})
    world.append_unsynced(T, 2)


def open_whole(world: World) -> None:
    """A start leaves no index of a closed segment missing or torn, although nobody has looked anything up.

    Nor a time index empty. An empty offset index costs nothing in a segment as small as these.
    """
    world.open()
    for path in _index_files(world):
        size, is_of_times = world.disk.size_of(path), path.endswith(TIME_INDEX_SUFFIX)
        require(size % (TIME_ENTRY_BYTES if is_of_times else ENTRY_BYTES) == 0, "index", f"{path} has {size} bytes")
        require(world.disk.exists(path) and (size > 0 or not is_of_times), "index", f"{path} is missing or empty")


def check_look_ups(world: World) -> None:
    """The promises of every log, and the answers; afterwards a checkpoint has saved what they built again."""
    check(world)
    _look_everything_up(world)
    process = world.process
    process.call(lambda: checkpoint_logs(process.partitions, process.logs.values()))
    lasts = {header.last_offset: header for _, header in _all_batches(world.log(T).view)}
    for path in _index_files(world):
        base, content = int(name_of(path).partition(".")[0]), world.disk.read_bytes(path)
        for one in _entries(path, content):
            found = lasts.get(base + one[1])
            is_true = found is not None and one[0] in (found.max_timestamp, _position(world, base, found))
            require(is_true, "index", f"{path} has the entry {one}")


def _index_files(world: World) -> list[str]:
    closed = world.log(T).segment_bases[:-1]
    return [_path(name) for base in closed for name in (index_name(base), time_index_name(base))]


def _entries(path: str, content: bytes) -> list[tuple[int, int]]:
    """(timestamp, relative offset) of a time index, (position, relative offset) of the other one."""
    if path.endswith(TIME_INDEX_SUFFIX):
        return [(time, relative) for time, relative in _TIME_ENTRY.iter_unpack(content)]
    return [(position, relative) for relative, position in _OFFSET_ENTRY.iter_unpack(content)]


def _position(world: World, base: int, wanted: BatchHeader) -> int:
    (segment,) = [one for one in world.log(T).view.segments if one.base_offset == base]
    return next(at for at, header in segment.log.walk(0, segment.size) if header.last_offset == wanted.last_offset)


def _look_everything_up(world: World) -> None:
    for held in world.process.logs.values():
        _look_up(held.log)


def _look_up(log: Log) -> None:
    """Raises Violation, and what a reader gets where the disk fails."""
    end = log.end_offset
    batches = [header for _, header in log.look_up(_all_batches)]
    for header in batches:
        for offset in range(max(header.base_offset, log.start_offset), header.next_offset):
            found = headers(log.read(offset, 1, upper_bound=end))
            is_right = _is_same(found[0], header)
            require(is_right, "look-up", f"{log.path}: offset {offset} is looked up in {found[0]}")
    served = [header for header in batches if header.next_offset > log.start_offset]
    for header in served:
        wanted = next(one for one in served if one.max_timestamp >= header.max_timestamp)
        time = header.max_timestamp
        data = log.look_up(lambda view, time=time: first_since(view, view.start_offset, time, end)).data  # type: ignore[misc]
        is_right = bool(data) and _is_same(headers(data)[0], wanted)
        require(is_right, "look-up", f"{log.path}: time {time} is looked up in {headers(data)}")


def _all_batches(view: LogView) -> list[tuple[int, BatchHeader]]:
    """From the first byte of each segment on, without an index."""
    return [one for at, segment in enumerate(view.segments) for one in segment.log.walk(0, view.limit(at))]


def _is_same(one: BatchHeader, other: BatchHeader) -> bool:
    """Wherever the bytes that they were read from began."""
    return (one.base_offset, one.crc) == (other.base_offset, other.crc)


def _path(name: str) -> str:
    return f"{DATA}/{partition_directory(T, 0)}/{name}"


def _overwrite(world: World, path: str, position: int, by: int) -> None:
    file = world.disk.open(path)
    (value,) = file.pread(position, 1)
    file.pwritev([bytes([value + by & 0xFF])], position)
    file.sync()
    file.close()
