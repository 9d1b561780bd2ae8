"""The same clients against either cluster: Kafka's Java performance tools, and librdkafka through confluent-kafka.

Every function returns records per second unless it says otherwise. The client's start is not timed: the Java tools
measure from their first record, and librdkafka connects to every leader first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from bench.peers.kafka_tools import CONSUMER_PERF, PRODUCER_PERF, Kafka
from bench.peers.peer import NODES, START_TIMEOUT_S, remaining

BATCHED = {"batch.size": "262144", "linger.ms": "5"}
DEFAULTS: Mapping[str, str] = {}
PERF_TIMEOUT_S = 600.0
POLL_S = 5.0
CONSUME_RECORDS = 10_000  # per call
RETRY_S = 0.05
# Finds a new leader quickly, on both sides alike: a client's own delay is not a property of the cluster.
IMPATIENT = {
    "log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100, "topic.metadata.refresh.fast.interval.ms": 50,
}  # fmt: skip
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Latency:
    """ms from sending a record to its acknowledgement."""

    p50: float
    p99: float


def java_produce(
    kafka: Kafka, servers: str, topic: str, records: int, record_bytes: int, settings: Mapping[str, str]
) -> float:
    said = _java_producer(kafka, servers, topic, records, record_bytes, settings, rate=-1, warm_up=records // 4)
    return float(_last(r"([\d.]+) records/sec", said))


def java_latency(
    kafka: Kafka, servers: str, topic: str, rate: int, seconds: float, record_bytes: int, linger_ms: int
) -> Latency:
    settings = {**BATCHED, "linger.ms": str(linger_ms)}
    said = _java_producer(kafka, servers, topic, int(rate * seconds), record_bytes, settings, rate, rate)
    return Latency(float(_last(r"(\d+) ms 50th", said)), float(_last(r"(\d+) ms 99th", said)))


def java_consume(kafka: Kafka, servers: str, topic: str, records: int) -> float:
    """A subscribed consumer, without the time of its group's first rebalance."""
    said = kafka.run(
        CONSUMER_PERF, "--bootstrap-server", servers, "--topic", topic, "--num-records", str(records),
        timeout_s=PERF_TIMEOUT_S,
    )  # fmt: skip
    return float(said.strip().splitlines()[-1].split(", ")[-1])


def rdkafka_produce(
    servers: str, topic: str, records: int, value: bytes, settings: Mapping[str, str] = DEFAULTS
) -> float:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "acks": "all", **BATCHED, **settings})
    _connect_all(producer, topic)
    start = time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    left = producer.flush(PERF_TIMEOUT_S)
    assert left == 0, f"{left} records were not acknowledged"
    return records / (time.perf_counter() - start)


def rdkafka_latencies(servers: str, topic: str, rate: int, seconds: float, settings: Mapping[str, str]) -> Latency:
    """At so many records of 1 KiB a second."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "acks": "all", **BATCHED, **settings})
    _connect_all(producer, topic)
    took: list[float] = []

    def delivered(error: Any, message: Any) -> None:
        assert error is None, f"a record was not acknowledged: {error}"
        took.append(message.latency() * 1_000)

    value, begun, sent = bytes(1024), time.perf_counter(), 0
    while (passed := time.perf_counter() - begun) < seconds:
        while sent < rate * passed:
            producer.produce(topic, value, on_delivery=delivered)
            sent += 1
        producer.poll(0.001)
    assert producer.flush(PERF_TIMEOUT_S) == 0, "records were not acknowledged"
    took.sort()
    return Latency(took[len(took) // 2], took[len(took) * 99 // 100])


def rdkafka_consume(servers: str, topic: str, records: int, settings: Mapping[str, str] = DEFAULTS) -> float:
    """A consumer with assigned partitions and no group."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False, **settings})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    start, done = time.perf_counter(), 0
    consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
    while done < records:
        found = consumer.consume(CONSUME_RECORDS, POLL_S)
        assert found, f"{done} of {records} records, then none for {POLL_S} s"
        done += len(found)
    seconds = time.perf_counter() - start
    consumer.close()
    return records / seconds


@contextmanager
def new_topic(servers: str, partitions: int, config: Mapping[str, str] | None = None) -> Iterator[str]:
    """A topic with three replicas, all in sync; deleted after the block. config: of the topic."""
    admin = make_admin(servers)
    name = f"versus-{next(_numbers)}"
    create_topic(admin, name, partitions, config)
    try:
        yield name
    finally:
        admin.delete_topics([name])[name].result()


def make_admin(servers: str) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": servers, **IMPATIENT})


def create_topic(admin: Any, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    """Retries until the topic exists and all replicas are in sync, because the cluster may just be starting."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.cimpl import NewTopic

    deadline = time.perf_counter() + START_TIMEOUT_S
    while remaining(deadline):
        try:
            wanted = NewTopic(name, partitions, NODES, config=dict(config or {}))
            admin.create_topics([wanted], request_timeout=2.0)[name].result()
            break
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                break
            time.sleep(RETRY_S)
    while remaining(deadline) and not in_sync(admin, name):
        time.sleep(RETRY_S)


def in_sync(admin: Any, name: str) -> bool:
    from confluent_kafka import KafkaException

    try:
        partitions = admin.list_topics(name, timeout=2.0).topics[name].partitions.values()
    except KafkaException:
        return False
    return bool(partitions) and all(len(found.isrs) == NODES and found.leader >= 0 for found in partitions)


def _java_producer(
    kafka: Kafka,
    servers: str,
    topic: str,
    records: int,
    record_bytes: int,
    settings: Mapping[str, str],
    rate: int,
    warm_up: int,
) -> str:
    """The tool's output. Its last line covers the records after the first `warm_up`."""
    properties = [f"{key}={value}" for key, value in {"bootstrap.servers": servers, "acks": "all", **settings}.items()]
    return kafka.run(
        PRODUCER_PERF, "--topic", topic, "--num-records", str(records + warm_up), "--warmup-records", str(warm_up),
        "--record-size", str(record_bytes), "--throughput", str(rate), "--command-property", *properties,
        timeout_s=PERF_TIMEOUT_S,
    )  # fmt: skip


def _connect_all(producer: Any, topic: str) -> None:
    for index in producer.list_topics(topic).topics[topic].partitions:
        producer.produce(topic, b"warm", partition=index)
    producer.flush()


def _last(pattern: str, text: str) -> str:
    found: list[str] = re.findall(pattern, text)
    assert found, f"no {pattern!r} in {text[-500:]!r}"
    return found[-1]
