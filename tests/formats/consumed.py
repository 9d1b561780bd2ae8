"""What a Kafka consumer (librdkafka) reads of a partition, in the form that the golden hashes are of."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

ANSWER_S = 60.0
AGAIN = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "OFFSET_NOT_AVAILABLE", "_TIMED_OUT", "_TRANSPORT")


def read_all(servers: str, topic: str, partition: int, isolation: str, *, end: int | None = None) -> list[list[Any]]:
    """Every record from the beginning on, as a consumer of this isolation level gets it.

    end: what can be read must reach at least so far first; None: at least one record.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, _first_offset(consumer, topic, partition, end))])
        return list(_rows_until_end(consumer))
    finally:
        consumer.close()


def end_offset(servers: str, topic: str, partition: int) -> int:
    """The high watermark."""
    return offsets_of(servers, topic, partition)[1]


def offsets_of(servers: str, topic: str, partition: int) -> tuple[int, int]:
    """The log start offset and the high watermark."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader"})
    try:
        return _offsets(consumer, topic, partition, time.monotonic() + ANSWER_S)
    finally:
        consumer.close()


def _first_offset(consumer: Consumer, topic: str, partition: int, end: int | None) -> int:
    """Once what can be read reaches so far, or at the deadline."""
    deadline = time.monotonic() + ANSWER_S
    while True:
        low, high = _offsets(consumer, topic, partition, deadline)
        if high >= (low + 1 if end is None else end) or time.monotonic() > deadline:
            return low
        time.sleep(0.1)


def _offsets(consumer: Consumer, topic: str, partition: int, deadline: float) -> tuple[int, int]:
    """A broker that has just started may not lead yet, or not know yet how far its records are committed (KIP-207)."""
    while True:
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_S)
            return int(low), int(high)
        except KafkaException as error:
            if (not error.args[0].retriable() and error.args[0].name() not in AGAIN) or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _rows_until_end(consumer: Consumer) -> Iterator[list[Any]]:
    deadline = time.monotonic() + ANSWER_S
    while True:
        assert time.monotonic() < deadline, "the end of the partition did not come"
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF", message.error()
            return
        kind, timestamp = message.timestamp()
        headers = [[name, _hex(value)] for name, value in message.headers() or ()]
        yield [message.offset(), kind, timestamp, _hex(message.key()), _hex(message.value()), headers]


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
