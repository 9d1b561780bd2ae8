"""The log engine in one process, beside the bare system calls that move the same bytes on the same disk.

- append: turns of 16 queued batches of 64 KiB by the directory's writer without a sync, beside `pwritev` of the same
  bytes; with the group commit, beside `pwritev` and `fdatasync` of the same turns.
- read: front to back by `Log.read_part`, beside `pread` of the same positions, both from the page cache.
- recovery: of a log that was not closed, beside `pread` and a checksum of the same bytes; both from the disk.
- open: a log of 1,000 segments that was closed.
- memory: bytes that Python allocates at the peak of one turn, for batches of few and of many records.

The two sides run alternately, and which one begins changes from round to round. Shares are rates, ours of the bare one.
"""

from __future__ import annotations

import os
import shutil
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.report import Row
from quorumlog.records import Record, encode_batch, headers, verify_crc
from quorumlog.records.format.batch import BATCH_OVERHEAD, parse_header
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.writer import AppendJob, DirectoryWriter

BATCH_BYTES = 64 * 1024
BATCHES_PER_TURN = 16
RECORD_BYTES = 1024
TURNS, QUICK_TURNS = 256, 64  # 268 and 67 MB
SYNCED_TURNS, QUICK_SYNCED_TURNS = 64, 16
READ_BYTES = 1 << 20
SEGMENTS = 1_000
MIN_SEGMENT_BYTES = 4096
PUBLISHED = (1 << 63) - 1

APPEND_GOAL, SYNCED_GOAL, READ_GOAL, RECOVERY_GOAL = 0.6, 0.5, 0.5, 0.5
OPEN_GOAL_S = 0.5
ALLOCATED_GOAL = 1.1  # of few records a batch; an object per record would be many times that


@dataclass(frozen=True, slots=True)
class Pair:
    """Seconds of one round of both sides, for the same bytes."""

    ours_s: float
    bare_s: float
    size: int


def measure(folder: Path, rounds: int, *, quick: bool) -> list[Row]:
    folder.mkdir(parents=True)
    turns, synced = (QUICK_TURNS, QUICK_SYNCED_TURNS) if quick else (TURNS, SYNCED_TURNS)
    batch = make_batch(RECORD_BYTES)
    appends = [append(folder, batch, turns, number, durable=False) for number in range(rounds)]
    commits = [append(folder, batch, synced, number, durable=True) for number in range(rounds)]
    reads, recoveries = [], []
    for number in range(rounds):
        path = written_log(folder, batch, turns)
        reads.append(read(path))
        recoveries.append(recover(path, number))
        shutil.rmtree(path)
    opens = [open_many(folder, batch) for _ in range(rounds)]
    few, many = allocated_in_a_turn(folder, RECORD_BYTES), allocated_in_a_turn(folder, 100)
    return [
        _row("append, no sync", appends, "pwritev", APPEND_GOAL),
        _row("append, group commit", commits, "write and fdatasync", SYNCED_GOAL),
        _row("read, front to back", reads, "pread", READ_GOAL),
        _row("recovery of an unclean log", recoveries, "read and checksum", RECOVERY_GOAL),
        Row(
            name=f"open a clean log of {SEGMENTS:,} segments", unit="s", rounds=opens, goal=OPEN_GOAL_S, at_least=False
        ),
        Row(name="allocated by a turn, records of 1 KiB", unit="KB", rounds=[few / 1e3]),
        Row(
            name="allocated by a turn, records of 100 B", unit="KB", rounds=[many / 1e3], shares=[many / few],
            of="records of 1 KiB", goal=ALLOCATED_GOAL, at_least=False,
        ),
    ]  # fmt: skip


def make_batch(record_bytes: int, batch_bytes: int = BATCH_BYTES) -> bytes:
    """One batch of about `batch_bytes`, of records without keys."""
    value = os.urandom(record_bytes)
    count = max(1, batch_bytes // (record_bytes + 16))
    return encode_batch([Record(number, 1_700_000_000_000, None, value, ()) for number in range(count)])


def append(folder: Path, batch: bytes, turns: int, number: int, *, durable: bool) -> Pair:
    return _alternately(
        lambda: _our_append(folder / "append", batch, turns, durable=durable),
        lambda: _bare_append(folder / "bare", batch, turns, durable=durable),
        number,
        turns * _turn_bytes(batch),
    )


def _alternately(ours: Callable[[], float], bare: Callable[[], float], number: int, size: int) -> Pair:
    """One round. In every other one the bare side runs first. number: of the round."""
    if number % 2 == 0:
        ours_s = ours()
        return Pair(ours_s, bare(), size)
    bare_s = bare()
    return Pair(ours(), bare_s, size)


def _our_append(path: Path, batch: bytes, turns: int, *, durable: bool) -> float:
    log = Log.open(RealDisk(), str(path), LogConfig(durable=durable))
    writer = DirectoryWriter(str(path.parent))
    seconds = 0.0
    for _ in range(turns):
        jobs = [AppendJob(log, batches) for batches in _queued(batch, log.end_offset)]
        began = time.perf_counter()
        writer.write_phase(jobs)
        outcomes = writer.sync_phase()
        seconds += time.perf_counter() - began
        assert all(outcome.error is None for outcome in outcomes)
    log.close()
    shutil.rmtree(path)
    return seconds


def _queued(batch: bytes, end_offset: int) -> Iterator[list[StoredBatch]]:
    found = list(headers(batch))
    for _ in range(BATCHES_PER_TURN):
        stored = stamped_batches(batch, found, end_offset, 0)
        end_offset = stored[-1].next_offset
        yield stored


def _bare_append(path: Path, batch: bytes, turns: int, *, durable: bool) -> float:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    buffers = [batch] * BATCHES_PER_TURN
    try:
        began = time.perf_counter()
        for turn in range(turns):
            assert os.pwritev(file, buffers, turn * _turn_bytes(batch)) == _turn_bytes(batch)
            if durable:
                os.fdatasync(file)
        return time.perf_counter() - began
    finally:
        os.close(file)
        path.unlink()


def _turn_bytes(batch: bytes) -> int:
    return BATCHES_PER_TURN * len(batch)


def written_log(folder: Path, batch: bytes, turns: int, segment_bytes: int = 1 << 30) -> Path:
    """A log of `turns` turns that was synced and not closed."""
    path = folder / "log"
    log = Log.open(RealDisk(), str(path), LogConfig(durable=False, segment_bytes=segment_bytes))
    for _ in range(turns):
        for batches in _queued(batch, log.end_offset):
            log.append(batches)
    log.sync()
    return path


def read(path: Path) -> Pair:
    log = Log.open(RealDisk(), str(path), LogConfig(), recovery_point=0)
    taken: list[int] = []  # bytes of each read
    offset = log.start_offset
    for part in _parts(log, offset):
        taken.append(len(part))  # and warms the page cache
    began = time.perf_counter()
    size = sum(len(part) for part in _parts(log, offset))
    ours_s = time.perf_counter() - began
    return Pair(ours_s, _bare_read(next(iter(sorted(path.glob("*.log")))), taken), size)


def _parts(log: Log, offset: int) -> Iterator[bytes]:
    """As a consumer reads: the next offset comes from the last batch of what it got."""
    batch_records = 0
    while part := log.read(offset, READ_BYTES, upper_bound=PUBLISHED):
        yield part
        if not batch_records:
            first = next(iter(headers(part)))
            batch_records, batch_size = first.last_offset_delta + 1, first.size
        offset += len(part) // batch_size * batch_records


def _bare_read(path: Path, lengths: Sequence[int]) -> float:
    file = os.open(path, os.O_RDONLY)
    try:
        began, position = time.perf_counter(), 0
        for length in lengths:
            position += len(os.pread(file, length, position))
        return time.perf_counter() - began
    finally:
        os.close(file)


def recover(path: Path, number: int) -> Pair:
    log_file = next(iter(sorted(path.glob("*.log"))))
    size = log_file.stat().st_size
    return _alternately(lambda: _our_recovery(path, log_file), lambda: _bare_recovery(log_file), number, size)


def _our_recovery(path: Path, log_file: Path) -> float:
    _drop_cached(log_file)
    began = time.perf_counter()
    log = Log.open(RealDisk(), str(path), LogConfig(), recovery_point=0)
    seconds = time.perf_counter() - began
    assert log.recovery.scanned_bytes == log_file.stat().st_size, "everything was to be scanned"
    return seconds


def _bare_recovery(log_file: Path) -> float:
    """Pieces of whole batches, and the codec's checksum of each batch."""
    _drop_cached(log_file)
    file = os.open(log_file, os.O_RDONLY)
    try:
        began, position = time.perf_counter(), 0
        piece_bytes = READ_BYTES // BATCH_BYTES * parse_header(os.pread(file, BATCH_OVERHEAD, 0)).size
        while data := os.pread(file, piece_bytes, position):
            for header in headers(data):
                verify_crc(data, header)
            position += len(data)
        return time.perf_counter() - began
    finally:
        os.close(file)


def _drop_cached(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def open_many(folder: Path, batch: bytes) -> float:
    """Seconds to open a closed log of many segments, each of one batch."""
    path = folder / "segments"
    config = LogConfig(durable=False, segment_bytes=MIN_SEGMENT_BYTES, remembers_producers=True)
    log = Log.open(RealDisk(), str(path), config)
    small = make_batch(RECORD_BYTES, MIN_SEGMENT_BYTES // 2)
    for _ in range(SEGMENTS * 3):
        if len(log.segment_bases) == SEGMENTS:
            break
        log.append(stamped_batches(small, headers(small), log.end_offset, 0))
    assert len(log.segment_bases) == SEGMENTS
    log.close()
    end_offset = log.end_offset
    began = time.perf_counter()
    opened = Log.open(RealDisk(), str(path), config, recovery_point=end_offset, clean=True)
    seconds = time.perf_counter() - began
    assert opened.end_offset == end_offset
    opened.close()
    shutil.rmtree(path)
    return seconds


def allocated_in_a_turn(folder: Path, record_bytes: int) -> int:
    """Peak of what Python allocates while it stamps, appends and reads back one turn, in bytes."""
    path = str(folder / "allocated")
    batch = make_batch(record_bytes)
    log = Log.open(RealDisk(), path, LogConfig(durable=False))
    writer = DirectoryWriter(str(folder))

    def turn() -> None:
        writer.write_phase([AppendJob(log, batches) for batches in _queued(batch, log.end_offset)])
        writer.sync_phase()

    turn()
    peak = _peak_of(turn)
    log.close()
    shutil.rmtree(path)
    return peak


def _peak_of(call: Callable[[], None]) -> int:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        _, peak = tracemalloc.get_traced_memory()
        return peak - before
    finally:
        tracemalloc.stop()


def _row(name: str, pairs: Sequence[Pair], of: str, goal: float) -> Row:
    return Row(
        name=name,
        unit="MB/s",
        rounds=[pair.size / pair.ours_s / 1e6 for pair in pairs],
        shares=[pair.bare_s / pair.ours_s for pair in pairs],
        of=of,
        goal=goal,
    )
