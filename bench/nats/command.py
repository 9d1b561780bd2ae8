"""Beside NATS JetStream: the same loads on three servers of NATS and on three nodes of ours, on the same disk.

    ./dev bench nats [--quick] [--rounds N] [--json FILE] [--folder DIR]

Six streams and six partitions, three replicas each. What is compared promises the same: NATS as it is shipped
(sync_interval 2m) beside durability=replicated, both acknowledged from the page cache; NATS with sync_interval always
beside durability=synced, both from the disk. NATS has its Go client, with 4,000 records in flight on a connection for
each stream; ours has the Python client, record by record and as columns. All clusters are up at the same time, and are
loaded in turn in each round. Needs Go; without it, it says so and exits with 0.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.kafka.table import ratios
from bench.measuring import machine
from bench.measuring.loads import Load, make_load
from bench.measuring.machine import MEGABYTE
from bench.measuring.report import Report, Row, percentile, print_heading
from bench.measuring.start import new_folder
from bench.nodes.subject import Subject
from bench.peers.kafka_tools import Unavailable
from bench.peers.nats import SERVER, Nats, get_nats
from bench.three import failover, throughput
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.ports import PortPicker

ROUNDS, QUICK_ROUNDS = 3, 1
STREAMS, REPLICAS, RECORD_BYTES = 6, 3, 1024
LOAD_BYTES, QUICK_LOAD_BYTES = 96_000_000, 12_000_000
SINGLE_S, QUICK_SINGLE_S = 5, 1
PAIRS = {"page cache": ("2m", "replicated"), "disk": ("always", "synced")}  # promise: NATS's sync, our durability
BY_RECORD, BY_COLUMNS, READ = "publish 1 KiB, by record", "publish 1 KiB, as columns", "read 1 KiB, by record"
READ_COLUMNS, P50, P99 = "read 1 KiB, as columns", "one record, then the next: p50", "one record, then the next: p99"
FAILOVER, RECOVERY = "kill -9 of a leader to the next acknowledged record", "all killed, until a record is acknowledged"
BESIDE = {  # our figure, and NATS's
    BY_RECORD: BY_RECORD, BY_COLUMNS: BY_RECORD, READ: READ, READ_COLUMNS: READ,
    P50: P50, P99: P99, FAILOVER: FAILOVER, RECOVERY: RECOVERY,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Size:
    rounds: int
    load: Load
    single_s: int


@dataclass(slots=True)
class Found:
    """What one side gave, by figure: a value for each round."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, figure: str, value: float) -> None:
        self.values.setdefault(figure, []).append(value)


def main(argv: list[str]) -> int:
    options = _parse(argv)
    try:
        program = get_nats()
    except Unavailable as reason:
        print(f"not measured beside NATS: {reason}")
        return 0
    size = (
        Size(options.rounds or QUICK_ROUNDS, make_load(RECORD_BYTES, QUICK_LOAD_BYTES), QUICK_SINGLE_S)
        if options.quick
        else Size(options.rounds or ROUNDS, make_load(RECORD_BYTES, LOAD_BYTES), SINGLE_S)
    )
    settings = {"nats": SERVER, "rounds": size.rounds, "records": size.load.records, "quick": options.quick}
    report = Report(settings=settings, machine=machine.facts())
    print(", ".join(f"{name} {value}" for name, value in report.machine.items()))
    folder = new_folder("nats", options.folder)
    theirs, ours = asyncio.run(_measure(program, folder, size))
    print_heading(f"ours beside NATS {SERVER}")
    report.add(*rows(theirs, ours))
    if options.json:
        report.write_json(options.json)
    shutil.rmtree(folder)
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev bench nats", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="little data and one round, to check that it works")
    parser.add_argument("--rounds", type=int, help=f"default {ROUNDS}, quick {QUICK_ROUNDS}")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--folder", type=Path, help="folder of the logs, on the disk to be measured")
    return parser.parse_args(argv)


async def _measure(program: Path, folder: Path, size: Size) -> tuple[dict[str, Found], dict[str, Found]]:
    """By promise, what NATS gave and what ours did."""
    theirs, ours = {promise: Found() for promise in PAIRS}, {promise: Found() for promise in PAIRS}
    with ExitStack() as undo:
        servers = {
            promise: undo.enter_context(_nats(program, folder / sync, sync)) for promise, (sync, _) in PAIRS.items()
        }
        cluster, _ = failover.start_cluster(folder / "ours")
        undo.callback(cluster.close)
        for turn in range(size.rounds + 1):  # the first round warms up
            for promise, (_, durability) in PAIRS.items():
                counts = turn > 0
                _their_round(servers[promise], f"r{turn}", size, theirs[promise] if counts else Found())
                await _our_round(cluster, durability, size, ours[promise] if counts else Found())
        for promise, (_, durability) in PAIRS.items():
            for turn in range(size.rounds):
                _their_lives(servers[promise], f"k{turn}", size, theirs[promise])
                await _our_lives(cluster, durability, size, ours[promise])
    return theirs, ours


@contextmanager
def _nats(program: Path, root: Path, sync: str) -> Iterator[Nats]:
    picker = PortPicker()
    made = Nats(program, root, [(ports.client, ports.internal) for ports in picker.pick(3)], sync)
    try:
        made.start()
        yield made
    finally:
        made.close()
        picker.close()


def _their_round(nats: Nats, name: str, size: Size, found: Found) -> None:
    records = size.load.records - size.load.records % STREAMS
    megabytes = records * RECORD_BYTES / MEGABYTE
    nats.work("create", name, STREAMS, REPLICAS)
    found.add(BY_RECORD, megabytes / nats.work("publish", name, STREAMS, records, RECORD_BYTES)["seconds"])
    found.add(READ, megabytes / nats.work("read", name, STREAMS, records)["seconds"])
    single = nats.work("single", name, size.single_s, RECORD_BYTES)
    found.add(P50, single["p50_ms"])
    found.add(P99, single["p99_ms"])
    nats.work("delete", name, STREAMS)


async def _our_round(cluster: LocalCluster, durability: str, size: Size, found: Found) -> None:
    subject, load = Subject(cluster.nodes), size.load
    megabytes = load.records * RECORD_BYTES / MEGABYTE
    async with subject.topic(STREAMS, {"durability": durability}) as topic:
        found.add(BY_COLUMNS, megabytes / await throughput.produce_columns(subject, topic, load, STREAMS))
        found.add(READ, megabytes / await throughput.consume(subject, topic, load.records, throughput.read_single))
        found.add(
            READ_COLUMNS, megabytes / await throughput.consume(subject, topic, load.records, throughput.read_columns)
        )
    async with subject.topic(STREAMS, {"durability": durability}) as topic:
        values = load.values(min(load.records, throughput.SINGLE_RECORDS))
        seconds = await throughput.produce_single(subject, topic, values, STREAMS)
        found.add(BY_RECORD, len(values) * RECORD_BYTES / MEGABYTE / seconds)
        times = await _one_by_one(subject, topic, values[0], size.single_s)
        found.add(P50, percentile(times, 50))
        found.add(P99, percentile(times, 99))


async def _one_by_one(subject: Subject, topic: str, value: bytes, seconds: int) -> list[float]:
    """Milliseconds of each record, which is sent when the one before is acknowledged."""
    times: list[float] = []
    async with subject.producer(linger_ms=0) as producer:
        await (await producer.send(topic, value, partition=0))
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            await (await producer.send(topic, value, partition=0))
            times.append((time.perf_counter() - start) * 1000)
    return times


def _their_lives(nats: Nats, name: str, size: Size, found: Found) -> None:
    records = size.load.records - size.load.records % STREAMS
    nats.work("create", name, STREAMS, REPLICAS)
    nats.work("publish", name, STREAMS, records, RECORD_BYTES)
    victim = nats.work("leader", name)["name"]
    nats.kill(victim)
    start = time.perf_counter()
    nats.work("acked", name)
    found.add(FAILOVER, time.perf_counter() - start)
    nats.start(victim)
    before = nats.work("count", name, STREAMS)["count"]
    nats.kill()
    start = time.perf_counter()
    nats.start()
    nats.work("acked", name)
    found.add(RECOVERY, time.perf_counter() - start)
    _expect_all("NATS", before + 1, nats.work("count", name, STREAMS)["count"])
    nats.work("delete", name, STREAMS)


async def _our_lives(cluster: LocalCluster, durability: str, size: Size, found: Found) -> None:
    subject = Subject(cluster.nodes)
    async with subject.topic(STREAMS, {"durability": durability}) as topic:
        await throughput.produce_columns(subject, topic, size.load, STREAMS)
        partition, victim = await failover.choose(subject, topic, leads_quorum=False)
        found.add(FAILOVER, (await failover.kill(subject, topic, partition, victim))[1])
        cluster.nodes.start([victim])
        cluster.nodes.wait_ready([victim])
        before = await subject.ends(topic)
        for node in cluster.nodes.ids:
            cluster.nodes.kill(node)
        start = time.perf_counter()
        cluster.nodes.start()
        async with subject.producer(retry_backoff_ms=20, retry_backoff_max_ms=100) as producer:
            await (await producer.send(topic, b"after", partition=partition))
        found.add(RECOVERY, time.perf_counter() - start)
        cluster.wait_healthy()
        _expect_all("ours", before + 1, await subject.ends(topic))


def _expect_all(name: str, want: int, there: int) -> None:
    assert there >= want, f"{name}: {there} records are left of {want} that were acknowledged"


def rows(theirs: dict[str, Found], ours: dict[str, Found]) -> list[Row]:
    """NATS's figure, then ours with its ratio, for each promise. Ours as columns stand beside NATS's by record."""
    found = []
    for promise in PAIRS:
        for figure, beside in BESIDE.items():
            values = theirs[promise].values[beside], ours[promise].values[figure]
            found += _pair(f"{figure} ({promise})", figure, *values)
    return found


def _pair(name: str, figure: str, theirs: Sequence[float], ours: Sequence[float]) -> list[Row]:
    unit = "ms" if figure in (P50, P99) else "s" if figure in (FAILOVER, RECOVERY) else "MB/s"
    return [
        Row(name=f"NATS: {name}", unit=unit, rounds=theirs),
        Row(name=name, unit=unit, rounds=ours, shares=ratios(theirs, ours), of="NATS's"),
    ]
