"""Transactions beside Kafka, both clusters up, rounds alternating: the same clients against each.

- produce: Kafka's kafka-producer-perf-test in one warm virtual machine, plain and in transactions of 100 and 1,000 ms.
- one record: begin, send, commit, one after the other, by librdkafka and by Java (OneRecord.java).
- committed reads into Arrow: a topic of transactions of which each tenth was aborted. Kafka's with librdkafka, ours
  with our own client; both make columns of all committed values.
- end to end: records at a fixed rate in transactions of 100 ms, from when each was due until a read_committed consumer
  (librdkafka, as the producer) has it.

The first round warms up and is not counted.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import kafka_clients as clients
from bench.kafka_committed_reads import Filled, fill, our_rows_per_s, rdkafka_rows_per_s
from bench.kafka_lives import start_peer
from bench.kafka_samples import Samples
from bench.kafka_tools import Kafka
from bench.machine import MEGABYTE
from bench.peer import OurPeer, Peer
from bench.transaction_latency import latencies_ms
from bench.warm_producer import WarmProducer

PARTITIONS = 6
KIB = 1024
DURATIONS_MS = (100, 1_000)  # of the transactions that a load of records is cut into
PLAIN = "plain"
E2E_RATE, E2E_MS = 500, 100
ONE_RECORD = Path(__file__).with_name("OneRecord.java")
CLIENTS = ("librdkafka", "Java")
_TOTAL = re.compile(r"records sent, ([\d.]+) records/sec .* 50th")
_COMMITS = re.compile(r"^([\d.]+) commits/s, ([\d.]+) ms p50$")


def produced(duration_ms: int) -> str:
    """The name of a figure, MB/s."""
    return f"transactional {duration_ms}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """records: of one produce. seconds: of one-record transactions and of end to end. committed: to be read."""

    records: int
    seconds: float
    committed: int


@dataclass(frozen=True, slots=True)
class _Side:
    peer: Peer
    figures: Samples
    filled: Filled


def measure(kafka: Kafka, peers: Sequence[tuple[Callable[[], Peer], Samples]], work: Work, rounds: int) -> None:
    """Starts both clusters, measures, stops them."""
    with ExitStack() as running:
        sides = [_started(make, figures, work, running) for make, figures in peers]
        producer = running.enter_context(WarmProducer(kafka))
        one_record = running.enter_context(WarmProducer(kafka, ONE_RECORD))
        for turn in range(rounds + 1):
            for side in sides:
                print(f"{side.peer.name}: transactions, round {turn} of {rounds}", flush=True)
                found = side.figures if turn else Samples("warm-up")
                _round(side, producer, one_record, work, found, turn)


def _started(make: Callable[[], Peer], figures: Samples, work: Work, running: ExitStack) -> _Side:
    peer = make()
    running.callback(peer.close)
    start_peer(peer)
    servers = peer.bootstrap_servers
    clients.create_topic(clients.make_admin(servers), "filled", PARTITIONS)
    return _Side(peer, figures, fill(servers, "filled", work.committed, bytes(KIB)))


def _round(
    side: _Side, producer: WarmProducer, one_record: WarmProducer, work: Work, found: Samples, turn: int
) -> None:
    servers = side.peer.bootstrap_servers
    with clients.new_topic(servers, PARTITIONS) as topic:
        for duration_ms in (0, *DURATIONS_MS):
            figure = produced(duration_ms) if duration_ms else PLAIN
            found.attempt([figure], partial(_produce, producer, servers, topic, work.records, duration_ms, found))
        for client in CLIENTS:
            names = [f"{client} commits", f"{client} p50"]
            found.attempt(names, partial(_one_record, client, one_record, servers, topic, work.seconds, found, turn))
        found.attempt(["committed read"], partial(_read, side, found))
    found.attempt(["end to end p50", "end to end p99"], partial(_end_to_end, servers, work.seconds, found, turn))


def _produce(producer: WarmProducer, servers: str, topic: str, records: int, duration_ms: int, found: Samples) -> None:
    in_transactions = ["--transaction-duration-ms", str(duration_ms), "--transactional-id", f"load-{duration_ms}"]
    settings = {"bootstrap.servers": servers, "acks": "all", **clients.BATCHED}
    said = list(producer.run([
        "--topic", topic, "--num-records", str(records), "--record-size", str(KIB), "--throughput", "-1",
        *(in_transactions if duration_ms else ()),
        "--command-property", *(f"{key}={value}" for key, value in settings.items()),
    ]))  # fmt: skip
    rates = [float(one[1]) for line in said if (one := _TOTAL.search(line))]
    assert len(rates) == 1, f"the tool gave no total: {''.join(said)[-1_000:]}"
    found.add(produced(duration_ms) if duration_ms else PLAIN, rates[0] * KIB / MEGABYTE)


def _one_record(
    client: str, one_record: WarmProducer, servers: str, topic: str, seconds: float, found: Samples, turn: int
) -> None:
    if client == "Java":
        said = list(one_record.run([servers, topic, f"java-{turn}", str(seconds), str(KIB)]))
        told = [one for line in said if (one := _COMMITS.match(line.strip()))]
        assert len(told) == 1, f"no figure: {''.join(said)[-1_000:]}"
        rate, p50 = float(told[0][1]), float(told[0][2])
    else:
        rate, p50 = _one_record_rdkafka(servers, topic, seconds, f"rdkafka-{turn}")
    found.add(f"{client} commits", rate)
    found.add(f"{client} p50", p50)


def _one_record_rdkafka(servers: str, topic: str, seconds: float, transactional_id: str) -> tuple[float, float]:
    """Commits per second, and the median in ms."""
    from confluent_kafka import Producer

    producer: Any = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id, "linger.ms": 0})
    producer.init_transactions()
    value, took = bytes(KIB), []
    begun = before = time.perf_counter()
    while before - begun < seconds:
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.commit_transaction()
        now = time.perf_counter()
        took.append(now - before)
        before = now
    return len(took) / (before - begun), sorted(took)[len(took) // 2] * 1_000


def _read(side: _Side, found: Samples) -> None:
    servers = side.peer.bootstrap_servers
    if isinstance(side.peer, OurPeer):
        found.add("committed read", asyncio.run(our_rows_per_s(servers, side.filled)))
    else:
        found.add("committed read", rdkafka_rows_per_s(servers, side.filled))


def _end_to_end(servers: str, seconds: float, found: Samples, turn: int) -> None:
    with clients.new_topic(servers, 1) as topic:
        took = sorted(latencies_ms(servers, topic, f"due-{turn}", E2E_RATE, E2E_MS, seconds))
    found.add("end to end p50", took[len(took) // 2])
    found.add("end to end p99", took[len(took) * 99 // 100])
