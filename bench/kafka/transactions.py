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
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.kafka import clients
from bench.kafka.clients import CONSUME_RECORDS, POLL_S
from bench.kafka.lives import start_peer
from bench.kafka.table import Samples, figure_beside, or_why, ratios
from bench.kafka.warm_producer import WarmProducer
from bench.measuring.machine import MEGABYTE
from bench.measuring.report import Row
from bench.peers.kafka_tools import Kafka
from bench.peers.peer import OurPeer, Peer
from quorumlog.client import real_edges as edge

A_TRANSACTION = 1_000  # records
ABORTED_EVERY = 10  # transactions: of so many, one is aborted
POLL_MS = 5_000


class Filled(NamedTuple):
    """committed: records of committed transactions."""

    topic: str
    committed: int


def fill(servers: str, topic: str, committed: int, value: bytes) -> Filled:
    """At least so many committed records, by librdkafka."""
    from confluent_kafka import Producer

    producer: Any = Producer({"bootstrap.servers": servers, "transactional.id": "fills", "linger.ms": 5})
    producer.init_transactions()
    done = number = 0
    while done < committed:
        producer.begin_transaction()
        for _ in range(A_TRANSACTION):
            producer.produce(topic, value)
        number += 1
        if number % ABORTED_EVERY == 0:
            producer.flush()  # the records are in the log before they are aborted
            producer.abort_transaction()
        else:
            producer.commit_transaction()
            done += A_TRANSACTION
    return Filled(topic, done)


async def our_rows_per_s(servers: str, filled: Filled) -> float:
    """Rows per second; the first fetches are counted, connecting is not. Raises AssertionError for a wrong number."""
    config = {"bootstrap.servers": servers, "isolation.level": "read_committed"}
    async with edge.consumer(config) as consumer:
        await consumer.assign_topic(filled.topic, "latest", stop="latest")  # connects to every leader
        await consumer.assign_topic(filled.topic, "earliest", stop="latest")
        begun, rows = time.perf_counter(), 0
        while rows < filled.committed:
            found = await consumer.next_arrow(POLL_MS)
            assert found is not None, f"{rows} of {filled.committed} records, then none for {POLL_MS} ms"
            rows += found[1].num_rows
        seconds = time.perf_counter() - begun
    assert rows == filled.committed, f"{rows} records, and {filled.committed} were committed"
    return rows / seconds


def rdkafka_rows_per_s(servers: str, filled: Filled) -> float:
    """As `our_rows_per_s`, by librdkafka, each call's values as one column."""
    import pyarrow as pa
    from confluent_kafka import Consumer, TopicPartition

    consumer: Any = Consumer(
        {"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False,
         "isolation.level": "read_committed"}
    )  # fmt: skip
    partitions = consumer.list_topics(filled.topic).topics[filled.topic].partitions
    begun, rows = time.perf_counter(), 0
    consumer.assign([TopicPartition(filled.topic, index, 0) for index in partitions])
    while rows < filled.committed:
        found = consumer.consume(CONSUME_RECORDS, 0.1)
        assert found or time.perf_counter() - begun < 20 * POLL_S, f"{rows} of {filled.committed} records"
        rows += len(pa.array([one.value() for one in found], pa.binary()))
    seconds = time.perf_counter() - begun
    consumer.close()
    assert rows == filled.committed, f"{rows} records, and {filled.committed} were committed"
    return rows / seconds


PATIENCE_S = 30.0  # for the first record, and for the last ones


def latencies_ms(
    servers: str, topic: str, transactional_id: str, rate: int, transaction_ms: int, seconds: float
) -> list[float]:
    """Of `rate * seconds` records to one partition. The clock is that of this process."""
    count = int(rate * seconds)
    reader = _Reader(servers, topic, count, seconds + 2 * PATIENCE_S)
    producer = _producer(servers, transactional_id)
    _send_one(producer, topic)
    reader.thread.start()
    assert reader.ready.wait(PATIENCE_S), "the consumer has read nothing"
    begun = time.perf_counter()
    producer.begin_transaction()
    end = begun + transaction_ms / 1_000
    for number in range(count):
        due = begun + number / rate
        while (now := time.perf_counter()) < due or now >= end:
            if now >= end:
                end = _next(producer, end, transaction_ms)
            else:
                time.sleep(min(due, end) - now)
        producer.produce(topic, repr(due).encode())
        producer.poll(0)
    producer.commit_transaction()
    reader.thread.join(PATIENCE_S)
    assert len(reader.found) == count, f"{len(reader.found)} of {count} records were read"
    return reader.found


def _next(producer: Any, end: float, transaction_ms: int) -> float:
    """When the next transaction ends: after a whole number of durations."""
    producer.commit_transaction()
    producer.begin_transaction()
    now = time.perf_counter()
    while end <= now:
        end += transaction_ms / 1_000
    return end


def _producer(servers: str, transactional_id: str) -> Any:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id, "linger.ms": 0})
    producer.init_transactions()
    return producer


def _send_one(producer: Any, topic: str) -> None:
    producer.begin_transaction()
    producer.produce(topic, b"")
    producer.commit_transaction()


class _Reader:
    """found: ms of each record that told when it was due. ready: set at the first record, which does not."""

    def __init__(self, servers: str, topic: str, count: int, limit_s: float) -> None:
        self._servers, self._topic, self._count, self._limit_s = servers, topic, count, limit_s
        self.found: list[float] = []
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        from confluent_kafka import Consumer, TopicPartition

        consumer: Any = Consumer(
            {"bootstrap.servers": self._servers, "group.id": "none", "enable.auto.commit": False,
             "isolation.level": "read_committed"}
        )  # fmt: skip
        consumer.assign([TopicPartition(self._topic, 0, 0)])
        deadline = time.perf_counter() + self._limit_s
        while len(self.found) < self._count and time.perf_counter() < deadline:
            for one in consumer.consume(1_000, 0.05):
                value = one.value()
                if value:
                    self.found.append((time.perf_counter() - float(value)) * 1_000)
                else:
                    self.ready.set()
        consumer.close()


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


PRODUCE_GOAL, PLAIN_GOAL, COMMITS_GOAL, P50_GOAL, READ_GOAL, END_TO_END_GOAL = 1.0, 0.8, 1.0, 1.0, 5.0, 1.0


def transaction_rows(theirs: Samples, ours: Samples) -> list[Row]:
    rows = figure_beside("produce 1 KiB, no transactions", "MB/s", PLAIN, None, theirs, ours, at_least=True)
    for duration_ms in DURATIONS_MS:
        name, figure = f"produce 1 KiB, transactions of {duration_ms:,} ms", produced(duration_ms)
        rows += figure_beside(name, "MB/s", figure, PRODUCE_GOAL, theirs, ours, at_least=True)
        rows += _beside_plain("Kafka: " + name, figure, theirs, None)
        rows += _beside_plain(name, figure, ours, PLAIN_GOAL)
    for client in CLIENTS:
        name = f"begin, one record, commit: {client}"
        rows += figure_beside(name, "1/s", f"{client} commits", COMMITS_GOAL, theirs, ours, at_least=True)
        rows += figure_beside(f"{name}, p50", "ms", f"{client} p50", P50_GOAL, theirs, ours)
    name = "read_committed into Arrow, 10 % aborted"
    rows += figure_beside(name, "records/s", "committed read", READ_GOAL, theirs, ours, at_least=True)
    for part in ("p50", "p99"):
        name = f"end to end, transactions of 100 ms, {part}"
        rows += figure_beside(name, "ms", f"end to end {part}", END_TO_END_GOAL, theirs, ours)
    return rows


def _beside_plain(name: str, figure: str, of: Samples, goal: float | None) -> list[Row]:
    """A rate beside the rate of the same cluster without transactions."""
    name += " / plain"

    def make() -> list[Row]:
        rates = of[figure]
        return [Row(name=name, unit="MB/s", rounds=rates, shares=ratios(of[PLAIN], rates), of="plain", goal=goal)]

    return or_why(name, make)
