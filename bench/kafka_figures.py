"""What one cluster does: every figure that both have, and for ours those of its own client and of the floor."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import kafka_clients as clients
from bench import throughput
from bench.floor_client import Floor
from bench.floor_lane_client import LaneFloorClient
from bench.kafka_lives import failovers, memory_mb, start_peer
from bench.kafka_tools import Kafka
from bench.loads import Load, make_load
from bench.peer import OurPeer, Peer
from bench.subject import Subject

PARTITIONS = 6
KIB, SMALL = 1024, 100  # bytes of a record
RATES = (2_000, 20_000)  # records per second, where latency is measured
LINGERS_MS = (5, 0)  # of the client: its default, of which a record waits half, and none
MANY_PARTITIONS = (100, 1_000)
FLOOR_IN_FLIGHT = 5  # batches of one log under way, as our producer has

Figures = dict[str, list[float]]  # by name, the value of each round


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done. Records are per round."""

    rounds: int = 3
    starts: int = 3
    kills: int = 12
    warm_up_records: int = 2_000_000  # of SMALL bytes: what a Java virtual machine needs to compile a broker
    kib_records: int = 200_000
    small_records: int = 1_500_000
    latency_s: float = 10.0
    many_partitions: Sequence[int] = field(default=MANY_PARTITIONS)

    @classmethod
    def quick(cls, rounds: int) -> Size:
        return cls(
            rounds=rounds, starts=1, kills=2, warm_up_records=200_000, kib_records=40_000, small_records=200_000,
            latency_s=3.0, many_partitions=(),
        )  # fmt: skip

    def told(self) -> dict[str, Any]:
        return asdict(self)


def measure(kafka: Kafka, make: Callable[[int], Peer], size: Size, parts: Sequence[str], folder: Path) -> Figures:
    """Start a cluster, load it, kill its nodes by turns, and end it. `make` gives a new one for each number."""
    figures: Figures = defaultdict(list)
    for number in range(size.starts if "start" in parts else 1):
        peer = make(number)
        try:
            figures["start"].append(start_peer(peer))
            print(f"{peer.name}: {figures['start'][-1]:.2f} s to the first acknowledged write", flush=True)
            if number == 0:
                _load(kafka, peer, size, parts, folder, figures)
        finally:
            peer.close()
    return figures


def _load(kafka: Kafka, peer: Peer, size: Size, parts: Sequence[str], folder: Path, figures: Figures) -> None:
    servers = peer.bootstrap_servers
    if set(parts) & {"produce", "consume", "latency", "memory"}:
        with clients.new_topic(servers, PARTITIONS) as topic:
            clients.java_produce(kafka, servers, topic, size.warm_up_records, SMALL, clients.BATCHED)
    for turn in range(size.rounds):
        print(f"{peer.name}: round {turn + 1} of {size.rounds}", flush=True)
        if set(parts) & {"produce", "consume"}:
            _same_clients(kafka, peer, size, parts, figures)
        if "latency" in parts:
            _latency(kafka, servers, size, figures)
    if isinstance(peer, OurPeer) and set(parts) & {"produce", "consume"}:
        asyncio.run(_own_client(peer, size, folder, figures))
    if "memory" in parts:
        figures["memory"] = memory_mb(peer)
    if "failover" in parts:
        figures["failover"] = failovers(kafka, peer, size.kills)


def _same_clients(kafka: Kafka, peer: Peer, size: Size, parts: Sequence[str], figures: Figures) -> None:
    """A topic per load; what was produced is what is consumed."""
    servers = peer.bootstrap_servers
    for name, record_bytes, records in (("kib", KIB, size.kib_records), ("small", SMALL, size.small_records)):
        with clients.new_topic(servers, PARTITIONS) as topic:
            rate = clients.java_produce(kafka, servers, topic, records, record_bytes, clients.BATCHED)
            figures[f"java {name}"].append(rate)
            if "consume" in parts:
                figures[f"rdkafka consume {name}"].append(clients.rdkafka_consume(servers, topic, records))
                if not isinstance(peer, OurPeer):  # needs a consumer group
                    figures[f"java consume {name}"].append(clients.java_consume(kafka, servers, topic, records))
        with clients.new_topic(servers, PARTITIONS) as topic:
            figures[f"rdkafka {name}"].append(clients.rdkafka_produce(servers, topic, records, bytes(record_bytes)))
    with clients.new_topic(servers, PARTITIONS) as topic:
        rate = clients.java_produce(kafka, servers, topic, size.kib_records, KIB, clients.DEFAULTS)
        figures["java defaults kib"].append(rate)


def _latency(kafka: Kafka, servers: str, size: Size, figures: Figures) -> None:
    for rate in RATES:
        for linger_ms in LINGERS_MS:
            with clients.new_topic(servers, PARTITIONS) as topic:
                found = clients.java_latency(kafka, servers, topic, rate, size.latency_s, KIB, linger_ms)
            figures[f"p50 {rate} {linger_ms}"].append(found.p50)
            figures[f"p99 {rate} {linger_ms}"].append(found.p99)


async def _own_client(peer: OurPeer, size: Size, folder: Path, figures: Figures) -> None:
    """Columns in and out, each round beside the floor's; one round more comes first and is not counted."""
    subject = Subject(peer.nodes)
    loads = {"kib": make_load(KIB, size.kib_records * KIB), "small": make_load(SMALL, size.small_records * SMALL)}
    for turn in range(size.rounds + 1):
        found = figures if turn > 0 else defaultdict(list)
        for name, load in loads.items():
            async with subject.topic(PARTITIONS) as topic:
                found[f"own {name}"].append(load.records / await throughput.produce_columns(subject, topic, load))
                for way, read in (("chunks", throughput.read_chunk), ("columns", throughput.read_columns)):
                    seconds = await throughput.consume(subject, topic, load.records, read)
                    found[f"own consume {way} {name}"].append(load.records / seconds)
    for partitions in (PARTITIONS, *size.many_partitions):
        for turn in range(size.rounds):
            await _beside_floor(subject, folder / f"floor-{partitions}-{turn}", loads["kib"], partitions, figures)


async def _beside_floor(subject: Subject, folder: Path, load: Load, partitions: int, figures: Figures) -> None:
    async with subject.topic(partitions) as topic:
        figures[f"of floor {partitions}"].append(load.records / await throughput.produce_columns(subject, topic, load))
    with Floor(folder, partitions, lane=True) as floor:
        client = LaneFloorClient(floor.ports, partitions)
        await client.produce(load.messages[:PARTITIONS], FLOOR_IN_FLIGHT)  # connects
        seconds = await client.produce(load.messages, FLOOR_IN_FLIGHT)
        figures[f"floor {partitions}"].append(load.records / seconds)
        await client.close()
