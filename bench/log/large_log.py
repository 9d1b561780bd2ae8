"""A log of 4 GB beside one of 1 MB: appends and reads, taken by turns, and searches by time in the large one.

- append: turns of 16 batches of 64 KiB, without a sync. The small log begins anew after each turn.
- read: 64 KiB from a random offset. Each is read twice and the second time counts: a small log lies in the processor's
  cache, a large one in memory, where `pread` alone takes three times as long.
- search: as ListOffsets does it, for random times; and the first one after the log was opened, which loads its indexes.

Processor time of this thread, because other processes share the machine. Shares are times, small of large.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from bench.log.log_engine import make_batch
from bench.measuring.report import Row
from quorumlog.ids import Offset
from quorumlog.records import Record, encode_batch, headers
from quorumlog_broker.fetch.time_search import FirstSince, LatestTime, TimeSearch
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches
from quorumlog_storage.segment.log_config import LogConfig

BATCH_BYTES = 64 * 1024
BATCHES_PER_TURN = 16
LARGE_BYTES, QUICK_BYTES = 4 << 30, 256 << 20
SMALL_BYTES = 1 << 20
RECORD_BYTES = 4 * 1024
READS, SEARCHES = 400, 400
TURNS = 40
START_MS, STEP_MS, FALL_MS = 1_700_000_000_000, 10, 400  # times rise by the step for each batch; a few fall back
SEARCH_GOAL_MS = 1.0
LEAST_SHARE, MOST_SHARE = 0.8, 1.25
CONFIG = LogConfig(durable=False)


def measure(folder: Path, rounds: int, *, quick: bool) -> list[Row]:
    folder.mkdir(parents=True)
    size = QUICK_BYTES if quick else LARGE_BYTES
    path = folder / "large"
    written_log(path, size).close()
    firsts = [_first_search(path) for _ in range(rounds)]
    large = Log.open(RealDisk(), str(path), CONFIG, clean=True, recovery_point=0)
    assert large.size_bytes >= size
    try:
        searches = [_searches(large, number) for number in range(rounds)]
        pairs = [(_reads(folder, large, number), _appends(folder, large)) for number in range(rounds)]
    finally:
        large.close()
        shutil.rmtree(path)
    what = f"{size / 1e9:.1f} GB"
    return [
        _search_row(f"search by time in {what}, median", [median(one) for one in searches]),
        _search_row(f"search by time in {what}, 99 of 100", [quantiles(one, n=100)[98] for one in searches]),
        Row(name=f"first search by time in {what} after its opening", unit="ms", rounds=firsts),
        _row(f"read from {what}", [reads for reads, _ in pairs]),
        _row(f"append to {what}", [appends for _, appends in pairs]),
    ]


def written_log(path: Path, size: int) -> Log:
    """Batches of 64 KiB whose times rise, and now and then fall back."""
    log = Log.open(RealDisk(), str(path), CONFIG)
    value, count, number = bytes(RECORD_BYTES), BATCH_BYTES // RECORD_BYTES - 1, 0
    while log.size_bytes < size:
        turn: list[StoredBatch] = []
        for _ in range(BATCHES_PER_TURN):
            time_ms = START_MS + STEP_MS * number - (FALL_MS if number % 50 == 49 else 0)
            data = encode_batch([Record(n, time_ms, None, value, ()) for n in range(count)])
            turn += stamped_batches(data, headers(data), turn[-1].next_offset if turn else log.end_offset, 0)
            number += 1
        log.append(turn)
    return log


def _processor_ms(call: Callable[[], object]) -> float:
    began = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - began) / 1e6


def _run(search: TimeSearch) -> None:
    while not search.step():
        pass
    assert search.found is not None


def _first_search(path: Path) -> float:
    log = Log.open(RealDisk(), str(path), CONFIG, clean=True)
    middle = START_MS + STEP_MS * (log.size_bytes // BATCH_BYTES // 2)
    taken = _processor_ms(lambda: _run(FirstSince(log, log.end_offset, middle)))
    log.close()
    return taken


def _searches(log: Log, number: int) -> list[float]:
    rng, span = random.Random(number), STEP_MS * (log.size_bytes // BATCH_BYTES - 60)
    for segment in range(len(log.segment_bases)):  # the indexes are loaded
        _run(FirstSince(log, log.end_offset, START_MS + span * segment // len(log.segment_bases)))
    found = []
    for _ in range(SEARCHES):
        search = FirstSince(log, log.end_offset, START_MS + rng.randrange(span))
        found.append(_processor_ms(partial(_run, search)))
    found.append(_processor_ms(lambda: _run(LatestTime(log, log.end_offset))))
    return found


def _small_log(folder: Path) -> tuple[Path, Log]:
    path = folder / "small"
    shutil.rmtree(path, ignore_errors=True)
    return path, written_log(path, SMALL_BYTES)


def _reads(folder: Path, large: Log, number: int) -> tuple[float, float]:
    """Milliseconds in the large log and in the small one."""
    path, small = _small_log(folder)
    rng, taken = random.Random(number), [0.0, 0.0]
    for log in (large, small):
        log.read(_some_offset(rng, log), BATCH_BYTES, upper_bound=log.end_offset)
    for _ in range(READS):
        for which, log in enumerate((large, small)):
            offset, end = _some_offset(rng, log), log.end_offset
            log.read(offset, 1, upper_bound=end)
            taken[which] += _processor_ms(partial(log.read, offset, 1, upper_bound=end))
    small.close()
    shutil.rmtree(path)
    return taken[0], taken[1]


def _some_offset(rng: random.Random, log: Log) -> Offset:
    return rng.randrange(log.end_offset)


def _appends(folder: Path, large: Log) -> tuple[float, float]:
    """Likewise, for turns of the same batches."""
    data = make_batch(RECORD_BYTES)
    found, taken = headers(data), [0.0, 0.0]
    for turn in range(TURNS):
        path, small = _small_log(folder)
        logs = ((0, large), (1, small))
        for which, log in logs if turn % 2 else reversed(logs):
            batches: list[StoredBatch] = []
            for _ in range(BATCHES_PER_TURN):
                batches += stamped_batches(data, found, batches[-1].next_offset if batches else log.end_offset, 0)
            taken[which] += _processor_ms(partial(log.append, batches))
        small.close()
        shutil.rmtree(path)
    return taken[0], taken[1]


def _search_row(name: str, rounds: list[float]) -> Row:
    return Row(name=name, unit="ms", rounds=rounds, goal=SEARCH_GOAL_MS, at_least=False)


def _row(name: str, pairs: list[tuple[float, float]]) -> Row:
    return Row(
        name=name,
        unit="ms",
        rounds=[large for large, _ in pairs],
        shares=[small / large for large, small in pairs],
        of="1 MB",
        goal=LEAST_SHARE,
        at_most=MOST_SHARE,
    )
