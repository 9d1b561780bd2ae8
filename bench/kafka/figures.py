"""Measures one cluster: every figure of both clusters and, for ours, those of its own client and of the floor.

Each figure is a separate attempt, so that a failed one does not affect the others (`table.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.floor.client import Floor, LaneFloorClient
from bench.kafka import clients
from bench.kafka.lives import failovers, memory_mb, start_peer
from bench.kafka.partitions import Work as PartitionsWork
from bench.kafka.security import QUICK as QUICK_SECURITY
from bench.kafka.security import SecurityWork
from bench.kafka.table import Samples
from bench.kafka.transactions import Work
from bench.measuring.loads import Load, make_load
from bench.measuring.rounds import not_settled
from bench.nodes.subject import Subject
from bench.peers.kafka_tools import Kafka
from bench.peers.peer import OurPeer, Peer
from bench.three import throughput

PARTITIONS = 6
KIB, SMALL = 1024, 100  # bytes per record
RATES = (2_000, 20_000)  # records per second at which latency is measured
LINGERS_MS = (5, 0)  # the client's default, half of which is part of a record's latency; and none
MANY_PARTITIONS = (100, 1_000)
FLOOR_IN_FLIGHT = 5  # batches in flight per log, as with our producer


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The amount of work. Records are per round."""

    rounds: int = 3
    starts: int = 3
    kills: int = 12
    warm_up_rounds: int = 8  # at most; they end earlier, once two in a row are alike
    warm_up_records: int = 2_000_000  # of SMALL bytes, per round
    kib_records: int = 200_000
    small_records: int = 1_500_000
    latency_s: float = 10.0
    many_partitions: Sequence[int] = field(default=MANY_PARTITIONS)
    promise_share: float = 1.0  # of JavaLoad.measured_mb, in each round of equal promises
    settle_s: float = 90.0  # before an idle cluster is measured
    idle_s: float = 60.0
    recovery_rounds: int = 1
    recovery_mb: float = 4_000.0  # of records that each node holds when it is killed
    cleaner_records: int = 400_000  # of KIB, in each log that is compacted
    group_s: float = 5.0  # of each rate and latency of commits
    group_members: Sequence[int] = (3, 50, 500)
    group_load: tuple[int, int] = (5_000_000, 1_000_000)  # records of a log that is loaded, and how many are live
    transactions: Work = field(default=Work(records=80_000, seconds=5.0, committed=80_000))
    partitions: PartitionsWork = field(default=PartitionsWork())
    security: SecurityWork = field(default=SecurityWork())

    @classmethod
    def quick(cls, rounds: int) -> Size:
        return cls(
            rounds=rounds, starts=1, kills=2, warm_up_rounds=1, warm_up_records=200_000, kib_records=40_000,
            small_records=200_000, latency_s=3.0, many_partitions=(), promise_share=0.4, settle_s=1.0, idle_s=5.0,
            recovery_mb=200.0, cleaner_records=60_000, group_s=1.0, group_members=(3, 20), group_load=(100_000, 20_000),
            transactions=Work(records=30_000, seconds=3.0, committed=30_000),
            partitions=PartitionsWork(partitions=300, per_topic=100, moved_mb=200.0, settle_s=2.0),
            security=QUICK_SECURITY,
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    kafka: Kafka, make: Callable[[int], Peer], size: Size, parts: Sequence[str], folder: Path, figures: Samples
) -> None:
    """Start a cluster, load it, kill its nodes in turn, and stop it. `make` creates a new one for each number."""
    for number in range(size.starts if "start" in parts else 1):
        figures.attempt(["start"], partial(_live, kafka, make, number, size, parts, folder, figures))


def _live(
    kafka: Kafka, make: Callable[[int], Peer], number: int, size: Size, parts: Sequence[str], folder: Path,
    figures: Samples,
) -> None:  # fmt: skip
    """Loads only the first cluster."""
    peer = make(number)
    try:
        seconds = start_peer(peer)
        figures.add("start", seconds)
        print(f"{peer.name}: {seconds:.2f} s to the first acknowledged write", flush=True)
        if number == 0:
            _load(kafka, peer, size, parts, folder, figures)
    finally:
        peer.close()


def _load(kafka: Kafka, peer: Peer, size: Size, parts: Sequence[str], folder: Path, figures: Samples) -> None:
    if set(parts) & {"produce", "consume", "latency", "memory"}:
        figures.attempt(["warm-up"], partial(_warm_up, kafka, peer.bootstrap_servers, size, figures))
    for turn in range(size.rounds):
        print(f"{peer.name}: round {turn + 1} of {size.rounds}", flush=True)
        if set(parts) & {"produce", "consume"}:
            _same_clients(kafka, peer, size, parts, figures)
        if "latency" in parts:
            _latency(kafka, peer.bootstrap_servers, size, figures)
    if isinstance(peer, OurPeer) and set(parts) & {"produce", "consume"}:
        _own_client(peer, size, folder, figures)
    if "memory" in parts:
        figures.attempt(["memory"], lambda: _add_all(figures, "memory", memory_mb(peer)))
    if "failover" in parts:
        figures.attempt(["failover"], lambda: _add_all(figures, "failover", failovers(kafka, peer, size.kills)))


def _add_all(figures: Samples, name: str, values: Iterable[float]) -> None:
    """Adds each value as soon as it is measured."""
    for value in values:
        figures.add(name, value)


def _warm_up(kafka: Kafka, servers: str, size: Size, figures: Samples) -> None:
    """Until the rate of two rounds in a row is alike. A Kafka broker is compiled while it is loaded."""
    rates: list[float] = []
    while len(rates) < size.warm_up_rounds and not_settled(rates):
        with clients.new_topic(servers, PARTITIONS) as topic:
            rate = clients.java_produce(kafka, servers, topic, size.warm_up_records, SMALL, clients.BATCHED)
        rates.append(rate)
        figures.add("warm-up", rate)
        print(f"{figures.name}: warm-up {len(rates)}: {rate:,.0f} records/s", flush=True)


def _same_clients(kafka: Kafka, peer: Peer, size: Size, parts: Sequence[str], figures: Samples) -> None:
    servers = peer.bootstrap_servers
    for name, record_bytes, records in (("kib", KIB, size.kib_records), ("small", SMALL, size.small_records)):
        readers = _readers(kafka, peer, name) if "consume" in parts else {}
        figures.attempt(
            [f"java {name}", *readers],
            partial(_java, kafka, servers, name, record_bytes, records, readers, figures),
        )
        figures.attempt(
            [f"rdkafka {name}"], partial(_rdkafka, servers, f"rdkafka {name}", record_bytes, records, figures)
        )
    figures.attempt(["java defaults kib"], partial(_java_defaults, kafka, servers, size, figures))


Reader = Callable[[str, int], float]  # (topic, number of records) -> records per second


def _readers(kafka: Kafka, peer: Peer, name: str) -> dict[str, Reader]:
    """Readers by figure."""
    readers: dict[str, Reader] = {f"rdkafka consume {name}": partial(clients.rdkafka_consume, peer.bootstrap_servers)}
    if not isinstance(peer, OurPeer):  # it needs a consumer group
        readers[f"java consume {name}"] = partial(clients.java_consume, kafka, peer.bootstrap_servers)
    return readers


def _java(
    kafka: Kafka, servers: str, name: str, record_bytes: int, records: int, readers: Mapping[str, Reader],
    figures: Samples,
) -> None:  # fmt: skip
    """Consumes what it produced."""

    def consume(figure: str, read: Reader, topic: str) -> None:
        figures.add(figure, read(topic, records))

    with clients.new_topic(servers, PARTITIONS) as topic:
        rate = clients.java_produce(kafka, servers, topic, records, record_bytes, clients.BATCHED)
        figures.add(f"java {name}", rate)
        for figure, read in readers.items():
            figures.attempt([figure], partial(consume, figure, read, topic))


def _rdkafka(servers: str, figure: str, record_bytes: int, records: int, figures: Samples) -> None:
    with clients.new_topic(servers, PARTITIONS) as topic:
        figures.add(figure, clients.rdkafka_produce(servers, topic, records, bytes(record_bytes)))


def _java_defaults(kafka: Kafka, servers: str, size: Size, figures: Samples) -> None:
    with clients.new_topic(servers, PARTITIONS) as topic:
        rate = clients.java_produce(kafka, servers, topic, size.kib_records, KIB, clients.DEFAULTS)
        figures.add("java defaults kib", rate)


def _latency(kafka: Kafka, servers: str, size: Size, figures: Samples) -> None:
    for rate in RATES:
        for linger_ms in LINGERS_MS:
            names = [f"{part} {rate} {linger_ms}" for part in ("p50", "p99")]
            figures.attempt(names, partial(_latency_at, kafka, servers, size, rate, linger_ms, figures))


def _latency_at(kafka: Kafka, servers: str, size: Size, rate: int, linger_ms: int, figures: Samples) -> None:
    with clients.new_topic(servers, PARTITIONS) as topic:
        found = clients.java_latency(kafka, servers, topic, rate, size.latency_s, KIB, linger_ms)
    figures.add(f"p50 {rate} {linger_ms}", found.p50)
    figures.add(f"p99 {rate} {linger_ms}", found.p99)


def _own_client(peer: OurPeer, size: Size, folder: Path, figures: Samples) -> None:
    """Columns in and out, each round beside the floor's. The first of `rounds` + 1 rounds is not counted."""
    subject = Subject(peer.nodes)
    loads = {"kib": make_load(KIB, size.kib_records * KIB), "small": make_load(SMALL, size.small_records * SMALL)}
    for turn in range(size.rounds + 1):
        for name, load in loads.items():
            found = figures if turn > 0 else Samples("warm-up")
            names = [f"own {name}", *(f"own consume {way} {name}" for way in OWN_READERS)]
            figures.attempt(names, lambda: asyncio.run(_own_round(subject, name, load, found)))  # noqa: B023
    for partitions in (PARTITIONS, *size.many_partitions):
        for turn in range(size.rounds):
            names = [f"of floor {partitions}", f"floor {partitions}"]
            where = folder / f"floor-{partitions}-{turn}"
            figures.attempt(
                names,
                lambda: asyncio.run(_beside_floor(subject, where, loads["kib"], partitions, figures)),  # noqa: B023
            )


OWN_READERS = {"chunks": throughput.read_chunk, "columns": throughput.read_columns}


async def _own_round(subject: Subject, name: str, load: Load, figures: Samples) -> None:
    async with subject.topic(PARTITIONS) as topic:
        seconds = await throughput.produce_columns(subject, topic, load, PARTITIONS)
        figures.add(f"own {name}", load.records / seconds)
        for way, read in OWN_READERS.items():
            seconds = await throughput.consume(subject, topic, load.records, read)
            figures.add(f"own consume {way} {name}", load.records / seconds)


async def _beside_floor(subject: Subject, folder: Path, load: Load, partitions: int, figures: Samples) -> None:
    """Stops the floor before the topic is deleted, because the deletion is work for the nodes."""
    async with subject.topic(partitions) as topic:
        ours = load.records / await throughput.produce_columns(subject, topic, load, partitions)
        with Floor(folder, partitions, lane=True) as floor:
            client = LaneFloorClient(floor.ports, partitions)
            await client.produce([load.messages[0][:KIB]] * partitions, FLOOR_IN_FLIGHT)  # connects, as our client does
            floors = load.records / await client.produce(load.messages, FLOOR_IN_FLIGHT)
            await client.close()
        figures.add(f"of floor {partitions}", ours)
        figures.add(f"floor {partitions}", floors)
