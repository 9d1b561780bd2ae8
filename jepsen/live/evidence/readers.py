"""librdkafka's consumers: one follows all partitions while faults strike, one reads everything at the end."""

from __future__ import annotations

import threading
import time
import traceback
from array import array
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from jepsen.checkers.findings import Finding
from jepsen.live.cluster.nodes import TOPIC
from jepsen.live.evidence.values import RecordId
from quorumlog.ids import Offset
from quorumlog.testing.waiting import TimedOut, wait_until

Decode = Callable[[int, bytes | None], RecordId]  # partition, value
POLL_RECORDS = 1_000
POLL_S = 0.2
ASK_S = 5.0
SETTLE_S = 0.5  # between two equal answers about the ends
END_TIMEOUT_S = 60.0
MOST_FINDINGS = 20


class Records:
    """The records of each partition, by offset from 0. Every offset of these logs is a record."""

    def __init__(self, partitions: int) -> None:
        self.by_partition: list[array[int]] = [array("q") for _ in range(partitions)]
        self.findings: list[Finding] = []
        self.errors: dict[str, int] = {}

    @property
    def count(self) -> int:
        return sum(map(len, self.by_partition))

    def take(self, reader: str, partition: int, offset: Offset, found: RecordId) -> None:
        """One record. It must be the next one of its partition."""
        records = self.by_partition[partition]
        if offset == len(records):
            records.append(found)
        elif len(self.findings) < MOST_FINDINGS:
            name = "nonmonotonic-poll" if offset < len(records) else "poll-skip"
            self.findings.append(
                Finding(name, f"{reader} read offset {offset} of partition {partition} where {len(records)} was next")
            )

    def error(self, text: str) -> None:
        self.errors[text] = self.errors.get(text, 0) + 1


def new_consumer(servers: str, partitions: int) -> Any:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "live",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",  # a position that is out of range is to be seen
            "socket.timeout.ms": 6_000,
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(partitions)])
    return consumer


class ReaderThread(threading.Thread):
    """Reads all partitions from their start until `stop`."""

    def __init__(self, servers: str, partitions: int, decode: Decode) -> None:
        super().__init__(name="reader", daemon=True)
        self.records = Records(partitions)
        self.failure = ""  # why this thread ended early
        self._consumer = new_consumer(servers, partitions)
        self._decode = decode
        self._stop_reading = threading.Event()

    def stop(self) -> None:
        self._stop_reading.set()

    def run(self) -> None:
        try:
            while not self._stop_reading.is_set():
                poll(self._consumer, self.records, "the running consumer", self._decode)
        except BaseException:  # the run reports it
            self.failure = traceback.format_exc()
        finally:
            self._consumer.close()


def poll(consumer: Any, records: Records, reader: str, decode: Decode) -> None:
    for message in consumer.consume(POLL_RECORDS, POLL_S):
        if message.error() is not None:
            records.error(message.error().name())
        else:
            partition = message.partition()
            records.take(reader, partition, message.offset(), decode(partition, message.value()))


def read_everything(servers: str, partitions: int, decode: Decode) -> Records:
    """A new consumer reads every partition from 0 to its end. Raises TimedOut."""
    records = Records(partitions)
    consumer = new_consumer(servers, partitions)
    try:
        ends = _settled_ends(consumer, partitions)
        deadline = time.monotonic() + END_TIMEOUT_S
        while any(len(found) < end for found, end in zip(records.by_partition, ends, strict=True)):
            before = records.count
            poll(consumer, records, "the final consumer", decode)
            if records.count > before:
                deadline = time.monotonic() + END_TIMEOUT_S
            elif time.monotonic() > deadline:
                raise TimedOut(f"the final consumer read {[len(found) for found in records.by_partition]} of {ends}")
    finally:
        consumer.close()
    return records


def _settled_ends(consumer: Any, partitions: int) -> list[Offset]:
    """The ends, once they do not change any more: acks=1 records become readable a little later than they are told."""
    last: list[list[Offset]] = [[]]

    def settled() -> list[Offset] | None:
        try:
            ends = [consumer.get_watermark_offsets(TopicPartition(TOPIC, at), ASK_S)[1] for at in range(partitions)]
        except KafkaException:
            return None
        before, last[0] = last[0], ends
        time.sleep(SETTLE_S)  # the time over which they must not change
        return ends if ends == before else None

    return wait_until(settled, END_TIMEOUT_S, "the ends of the partitions", lambda: f"last: {last[0]}")
