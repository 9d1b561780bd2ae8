"""The workloads of compaction: rounds with their swaps, and starts that find a swap half done.

Two logs with keys, aborted data and a producer. Whatever a crash leaves, the last value of each key is there, at its
offset, and no reader meets a hole.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from jepsen.crash.check import require
from jepsen.crash.process import DATA
from jepsen.crash.world import World
from quorumlog.ids import Offset
from quorumlog.records import Record, decode_batch, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, encode_control
from quorumlog_storage.cleaning.round import clean
from quorumlog_storage.cleaning.spec import GroupCleaned, RoundSpec
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.files.names import CLEANED_SUFFIX, SWAP_SUFFIX
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.segment import Segment

PATHS = (f"{DATA}/c-0", f"{DATA}/c-1")
KEYS, BATCHES = 3, 11
SEGMENT_BYTES, MERGED_BYTES, OUTPUT_BYTES = 400, 2_000, 300
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, index_interval_bytes=100, remembers_producers=True)
ABORTED = 5  # the batch that is aborted; the next one is its marker
FIRST_MS = 1_700_000_000_000
PRODUCER = {"producer_id": 3, "producer_epoch": 0, "transactional": True}
WHOLE_BATCH = 10_000  # read at once


def filled(world: World, _rng: random.Random) -> None:
    """Both logs, and a file that an earlier round has left."""
    world.format()
    disk = world.process.disk
    for path in PATHS:
        log = _open(disk, path)
        for number in range(BATCHES):
            _append(log, number)
        log.close()
        disk.open(f"{path}/{900:020d}.log{CLEANED_SUFFIX}", create=True)
        disk.sync_directory(path)
    disk.sync_directory(DATA)
    world.end(None)


def half_swapped(world: World, rng: random.Random) -> None:
    """In the first log all outputs of a group have their suffix, in the second one all but the first."""
    filled(world, rng)
    disk = world.process.disk
    for path, missing in zip(PATHS, (0, 1), strict=True):
        log = _open(disk, path)
        group = next(step for step in _steps(log) if isinstance(step, GroupCleaned) and step.outputs)
        assert len(group.outputs) > 1
        for base, _ in reversed(group.outputs[missing:]):
            Segment(disk, path, base, 100, CLEANED_SUFFIX).rename(SWAP_SUFFIX)
            disk.sync_directory(path)
    world.end(None)


def compact(world: World) -> None:
    """A round that is given up, one that merges segments into several outputs, and one that changes nothing."""
    log = _open(world.process.disk, PATHS[0])
    given_up = _steps(log)
    while not [name for name in world.disk.list(log.path) if name.endswith(CLEANED_SUFFIX)]:
        next(given_up)
    _round(log)
    _round(log, segment_bytes=1)
    _round(log, segment_bytes=1)


def start(world: World) -> None:
    for path in PATHS:
        _open(world.process.disk, path)


def check(world: World) -> None:
    for path in PATHS:
        log = _open(world.process.disk, path)
        require(log.end_offset == BATCHES, "hole", f"{path} ends at {log.end_offset}, and not at {BATCHES}")
        require(not log.recovery.is_damage, "lost record", log.recovery.describe(path, 0))
        found = dict(_records(log))
        for offset, (key, value) in found.items():
            is_sent = (key, value) == _record(offset) and offset != ABORTED + 1
            require(is_sent, "invented record", f"{path} offset {offset}: {key!r}, {value!r}")
        last = {_record(offset)[0]: offset for offset in range(BATCHES) if offset not in (ABORTED, ABORTED + 1)}
        for key, offset in last.items():
            require(offset in found, "lost record", f"{path}: {key!r} was written last at {offset}; left are {found}")


def _open(disk: Disk, path: str) -> Log:
    return Log.open(disk, path, CONFIG, recovery_point=0)


def _record(offset: Offset) -> tuple[bytes, bytes]:
    return b"k%d" % (offset % KEYS), b"value-%d" % offset + b"." * 30


def _append(log: Log, number: int) -> None:
    if number == ABORTED + 1:
        key, value = encode_control(EndTxnMarker(committed=False, coordinator_epoch=1))
        data = encode_batch([Record(0, FIRST_MS + number, key, value, ())], control=True, **PRODUCER)  # type: ignore[arg-type]
    else:
        fields = {**PRODUCER, "base_sequence": 0} if number == ABORTED else {}
        data = encode_batch([Record(0, FIRST_MS + number, *_record(number), ())], **fields)  # type: ignore[arg-type]
    log.append(stamped_batches(data, headers(data), log.end_offset, 1))


def _steps(log: Log, segment_bytes: int = MERGED_BYTES) -> Iterator[object]:
    view = log.view
    spec = RoundSpec(
        path=log.path,
        segments=tuple((segment.base_offset, segment.size) for segment in view.segments[:-1]),
        end_offset=view.bases[-1],
        beyond=((view.bases[-1], view.last_size),),
        first_dirty=0,
        producers=(),
        hash_key=b"key",
        now_ms=FIRST_MS,
        delete_retention_ms=1_000,
        segment_bytes=segment_bytes,
        index_interval_bytes=100,
        segment_index_bytes=1_000,
        io_buffer_bytes=80,
        max_output_bytes=OUTPUT_BYTES,
    )
    return clean(log.disk, spec)


def _round(log: Log, segment_bytes: int = MERGED_BYTES) -> None:
    by_base, cuts = {segment.base_offset: segment for segment in log.view.segments}, log.cuts
    for step in _steps(log, segment_bytes):
        if isinstance(step, GroupCleaned) and step.outputs:
            log.replace_segments([by_base[base] for base in step.sources], step.outputs, cuts)


def _records(log: Log) -> Iterator[tuple[Offset, tuple[bytes | None, bytes | None]]]:
    offset, end = log.start_offset, log.end_offset
    while offset < end:
        data = log.read(offset, WHOLE_BATCH, upper_bound=end)
        require(bool(data), "hole", f"{log.path} offset {offset}: nothing is read, and the log ends at {end}")
        for header in headers(data):
            for record in decode_batch(data, header):
                if not header.is_control:
                    yield record.offset, (record.key, record.value)
            offset = header.next_offset
