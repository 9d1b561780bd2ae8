"""Tasks and drivers of one group on a real Apache Kafka, without Spark."""

from __future__ import annotations

import pyarrow as pa

from quorumlog.records.coordinator.joint import JointKind
from quorumlog.spark.write.kafka.delivery import KafkaDelivery
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf

TIMEOUT_MS = 600_000
PARTITIONS = 3


def batch(group: str, sequence: int, run: str, location: str = "/checkpoint") -> BatchOf:
    return BatchOf(group=group, kind=JointKind.STREAM, location=location, run=run, sequence=sequence)


def write(delivery: KafkaDelivery, of: BatchOf, token: bytes, topic: str, values: list[bytes]) -> Attempt | None:
    """A task's attempt; its rows go to the partitions in turn. None: the batch is decided."""
    attempt = delivery.begin(of, token)
    if attempt is None:
        return None
    with delivery.sender(attempt) as sender:
        sender.partition_count(topic)
        columns = {"value": pa.array(values, pa.binary()), "partition": [n % PARTITIONS for n in range(len(values))]}
        sender.queue(topic, pa.record_batch(columns), 0)
        sender.finish()
        return sender.attempt


def values_of(sequence: int, task: int, rows: int = 4) -> list[bytes]:
    return [b"%d.%d.%d" % (sequence, task, row) for row in range(rows)]
