"""Compaction by its process, and what appends to the same directory notice of it.

- rate: bytes of the log that a round compacts in a second of processor time of the cleaner's process, and by the clock;
  records of 1 KiB with keys, in batches of 16, of which most are overwritten, and of which hardly any is; in both forms
  of the work with keys.
- appends beside it: batches of 16 KiB to another log in the same directory, written and synced one after the other at a
  fixed pace; the 99th percentile while a cleaner is at work, as a share of the one while none is. Both are measured in
  each round.

It is the process that a node starts (quorumlog_server/edge/cleaner_process.py), on real files.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.log.log_engine import make_batch
from bench.measuring.report import Row
from quorumlog.records import Record, encode_batch, headers
from quorumlog_server.edge.cleaner_process import CleanerProcess
from quorumlog_storage.cleaning.spec import RoundDone, RoundSpec
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig

RECORD_BYTES, BATCH_RECORDS = 1024, 16
RECORDS, QUICK_RECORDS = 400_000, 60_000
SEGMENT_BYTES = 64 << 20
FEW_KEYS = 20_000
WHAT = {True: "overwritten records", False: "records that stay"}
FORMS = ("plain", "compiled")  # of the work with keys (quorumlog_storage/edge/cleaner.py)
RATE_GOAL_MB_S = 100.0
APPEND_GOAL = 2.0
PACE_S = 0.005
APPENDS = 600

_TICKS = os.sysconf("SC_CLK_TCK")


def measure(folder: Path, rounds: int, *, quick: bool) -> list[Row]:
    folder.mkdir(parents=True)
    records = QUICK_RECORDS if quick else RECORDS
    rates = {
        (form, keys): [rate(folder, records, keys, form) for _ in range(rounds)]
        for form in FORMS for keys in (FEW_KEYS, records * 100)
    }  # fmt: skip
    beside = [appends_beside(folder, records) for _ in range(rounds)]
    idle = [one[0] * 1e3 for one in beside]
    busy = [one[1] * 1e3 for one in beside]
    shares = [ours / alone for ours, alone in zip(busy, idle, strict=True)]
    return [
        Row(name=f"{form}, {WHAT[keys == FEW_KEYS]}, {by}", unit="MB/s", rounds=[one[n] for one in found], goal=goal)
        for (form, keys), found in rates.items()
        for n, (by, goal) in enumerate((("processor time", RATE_GOAL_MB_S), ("by the clock", None)))
    ] + [
        Row(
            name="p99 of synced appends beside a compaction", unit="ms", rounds=busy, shares=shares,
            of="the p99 without one", goal=APPEND_GOAL, at_least=False,
        ),
    ]  # fmt: skip


def rate(folder: Path, records: int, keys: int, form: str) -> tuple[float, float]:
    """MB of the log in a second: of the process's time, and by the clock. The process has done a round before, so it
    has loaded what it needs."""
    log = filled(folder / "compacted", records, keys)
    spec = spec_of(log)
    size = sum(size for _, size in spec.segments)

    async def run() -> tuple[float, float]:
        process, used, began = CleanerProcess(form), 0.0, 0.0
        for _ in range(2):
            before, began = used, time.perf_counter()
            async for step in process.steps(spec, no_reads):
                if isinstance(step, RoundDone) and process.pid is not None:
                    used = processor_seconds(process.pid)
        took = time.perf_counter() - began
        await process.rest()
        return size / (used - before) / 1e6, size / took / 1e6

    found = asyncio.run(run())
    shutil.rmtree(log.path)
    return found


def appends_beside(folder: Path, records: int) -> tuple[float, float]:
    """Seconds, the 99th percentile: alone, and beside a cleaner that is at work all the time."""
    log = filled(folder / "compacted", records, FEW_KEYS)
    beside = Log.open(RealDisk(), str(folder / "appended"), LogConfig())

    async def run() -> tuple[float, float]:
        alone = await asyncio.to_thread(paced_appends, beside, lambda: True)
        ends = asyncio.Event()
        cleaning = asyncio.create_task(clean_until(log, ends))
        await asyncio.sleep(0.5)
        busy = await asyncio.to_thread(paced_appends, beside, lambda: not cleaning.done())
        ends.set()
        await cleaning
        return alone, busy

    found = asyncio.run(run())
    beside.close()
    for path in (log.path, beside.path):
        shutil.rmtree(path)
    return found


async def clean_until(log: Log, ends: asyncio.Event) -> None:
    """Round after round over the same sources, as none is swapped in."""
    process = CleanerProcess()
    while not ends.is_set():
        async for _ in process.steps(spec_of(log), no_reads):
            if ends.is_set():
                break
    await process.rest()


def paced_appends(log: Log, goes_on: Callable[[], bool]) -> float:
    batch = make_batch(RECORD_BYTES, RECORD_BYTES * BATCH_RECORDS)
    found, took = list(headers(batch)), []
    due = time.perf_counter()
    for _ in range(APPENDS):
        assert goes_on(), "the cleaner ended before the appends did"
        due += PACE_S
        time.sleep(max(0.0, due - time.perf_counter()))
        began = time.perf_counter()
        log.append(stamped_batches(batch, found, log.end_offset, 0))
        log.sync()
        took.append(time.perf_counter() - began)
    return sorted(took)[int(0.99 * len(took))]


def filled(path: Path, records: int, keys: int) -> Log:
    log = Log.open(RealDisk(), str(path), LogConfig(segment_bytes=SEGMENT_BYTES, durable=False))
    rng, value = random.Random(1), os.urandom(RECORD_BYTES)
    for _ in range(records // BATCH_RECORDS):
        made = [
            Record(number, 1_700_000_000_000, b"key-%012d" % rng.randrange(keys), value, ())
            for number in range(BATCH_RECORDS)
        ]
        data = encode_batch(made)
        log.append(stamped_batches(data, headers(data), log.end_offset, 0))
    log.roll()
    log.sync()
    return log


def spec_of(log: Log) -> RoundSpec:
    view = log.view
    return RoundSpec(
        path=log.path,
        segments=tuple((segment.base_offset, segment.size) for segment in view.segments[:-1]),
        end_offset=view.bases[-1],
        beyond=(),
        first_dirty=0,
        producers=(),
        hash_key=os.urandom(16),
        now_ms=1_700_000_000_000,
        delete_retention_ms=86_400_000,
        segment_bytes=SEGMENT_BYTES,
        index_interval_bytes=4096,
        segment_index_bytes=10 << 20,
    )


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def no_reads(_work: Callable[[], Any]) -> Any:
    raise AssertionError("the process reads by itself")
