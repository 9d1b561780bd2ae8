"""Our cleaner and Kafka's on the same log: it is written once, and each of them compacts copies of it.

Kafka's turn: one node gets the copies as the partitions' directories of its topics while it is stopped. Its cleaner,
one thread, takes them one after the other, and its own log lines say how long each took ("... MB of log processed in
... seconds"). Our turn: the cleaner's process, and each group swapped in by the log's writer; timed by the clock, too.

The rate is the size of the log by that time. The first copies of each are not counted: Kafka's virtual machine compiles
the cleaner on them, and our process, one for all copies as in a node that is busy, loads its compiled form.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from pathlib import Path

from bench.kafka import clients
from bench.kafka.table import Samples
from bench.log.compaction import FEW_KEYS, SEGMENT_BYTES, filled, no_reads, spec_of
from bench.measuring.machine import MEGABYTE
from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import Kafka
from bench.peers.peer import START_TIMEOUT_S, remaining
from quorumlog_server.edge.cleaner_process import CleanerProcess
from quorumlog_storage.cleaning.spec import GroupCleaned
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig

WARM_UP = 2  # copies that each cleaner takes first
CLEAN_TIMEOUT_S = 300.0
RETRY_S = 0.2
OVERWRITTEN, UNIQUE = "cleaner, overwritten", "cleaner, unique"  # names of figures
_LOG_NAMES = ("kafka.log", "org.apache.kafka.storage.internals.log")  # of the cleaner's lines
_CLEANED = re.compile(r"cleaned log (\S+)-0 \(dirty section.*?MB of log processed in ([\d.,]+) seconds", re.DOTALL)
_FILES = (".log", ".index", ".timeindex")


def measure(kafka: Kafka, folder: Path, records: int, rounds: int, theirs: Samples, ours: Samples) -> None:
    """records: of 1 KiB, in each log."""
    folder.mkdir(parents=True, exist_ok=True)
    for figure, keys in ((OVERWRITTEN, FEW_KEYS), (UNIQUE, records * 100)):
        log = filled(folder / "log", records, keys)
        size = sum(size for _, size in spec_of(log).segments)
        log.close()
        theirs.attempt([figure], lambda: _theirs(kafka, folder, figure, size, rounds, theirs))  # noqa: B023
        ours.attempt([figure], lambda: _ours(folder, figure, size, rounds, ours))  # noqa: B023
        shutil.rmtree(log.path)
    shutil.rmtree(folder)


def _theirs(kafka: Kafka, folder: Path, figure: str, size: int, rounds: int, figures: Samples) -> None:
    options = [f"-Dorg.slf4j.simpleLogger.log.{name}=info" for name in _LOG_NAMES]
    changes = {"log.cleaner.backoff.ms": 100}
    peer = KafkaPeer(kafka, folder / "kafka", nodes=1, changes=changes, options=options)
    try:
        peer.start()
        names = [f"copy-{number}" for number in range(WARM_UP + rounds)]
        _create(peer.bootstrap_servers, names)
        peer.stop()
        for name in names:
            _put(folder / "log", peer.root / "data-1" / f"{name}-0")
        peer.start()
        found = _wait_cleaned(peer.log(1), names)
    finally:
        peer.close()
    shutil.rmtree(peer.root)
    for seconds in found[WARM_UP:]:
        figures.add(figure, size / seconds / MEGABYTE)
    print(f"Kafka: {figure}: {', '.join(f'{seconds:.1f}' for seconds in found)} s", flush=True)


def _create(servers: str, names: list[str]) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.cimpl import NewTopic

    config = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES), "min.insync.replicas": "1"}
    admin, deadline = clients.make_admin(servers), time.perf_counter() + START_TIMEOUT_S
    while True:
        try:
            for made in admin.create_topics([NewTopic(name, 1, 1, config=config) for name in names]).values():
                made.result()
            return
        except KafkaException:
            remaining(deadline)
            time.sleep(RETRY_S)


def _put(log: Path, partition: Path) -> None:
    """Give a stopped Kafka the records of our log as those of an empty partition."""
    for old in partition.iterdir():
        if old.suffix in _FILES:
            old.unlink()
    for file in log.iterdir():
        if file.suffix in _FILES or file.name == "leader-epoch-checkpoint":
            shutil.copy(file, partition)


def _wait_cleaned(log: Path, names: list[str]) -> list[float]:
    """Seconds of each, in the order in which they were cleaned. Raises TimeoutError."""
    deadline = time.perf_counter() + CLEAN_TIMEOUT_S
    while True:
        found = _CLEANED.findall(log.read_text(errors="replace"))
        if len(found) >= len(names):
            assert sorted(name for name, _ in found) == sorted(names), found
            return [float(seconds.replace(",", "")) for _, seconds in found]
        remaining(deadline)
        time.sleep(RETRY_S)


def _ours(folder: Path, figure: str, size: int, rounds: int, figures: Samples) -> None:
    found = asyncio.run(_cleaned(folder, WARM_UP + rounds))
    for seconds in found[WARM_UP:]:
        figures.add(figure, size / seconds / MEGABYTE)
    print(f"quorumlog: {figure}: {', '.join(f'{seconds:.1f}' for seconds in found)} s", flush=True)


async def _cleaned(folder: Path, copies: int) -> list[float]:
    """Seconds of each, by one process."""
    process, found = CleanerProcess(), []
    for _ in range(copies):
        copy = folder / "ours"
        await asyncio.to_thread(shutil.copytree, folder / "log", copy)
        found.append(await _clean(process, copy))
        await asyncio.to_thread(shutil.rmtree, copy)
    await process.rest()
    return found


async def _clean(process: CleanerProcess, path: Path) -> float:
    log = Log.open(RealDisk(), str(path), LogConfig(segment_bytes=SEGMENT_BYTES), clean=True)
    segments = {segment.base_offset: segment for segment in log.view.segments}
    began = time.perf_counter()
    async for step in process.steps(spec_of(log), no_reads):
        if isinstance(step, GroupCleaned) and step.outputs:
            sources = [segments[base] for base in step.sources]
            await asyncio.to_thread(log.replace_segments, sources, step.outputs, log.cuts)
    seconds = time.perf_counter() - began
    log.close()
    return seconds
