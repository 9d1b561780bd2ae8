"""A topic of transactions of which each tenth was aborted, and reads of what was committed, as columns."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from bench.kafka_clients import CONSUME_RECORDS, POLL_S
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
