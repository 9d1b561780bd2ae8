"""Records at a fixed rate in transactions, from when each was due until a read_committed consumer has it."""

from __future__ import annotations

import threading
import time
from typing import Any

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
