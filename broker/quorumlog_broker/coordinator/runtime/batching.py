"""The batches in which a coordinator's records leave: in their order, each as large as its topic takes at most.

Records of a transaction lie in transactional batches of its producer without sequence numbers, and its marker in a
control batch. So a batch ends where the producer changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quorumlog.records import Row, lay_out_rows
from quorumlog.records.batch import BATCH_OVERHEAD, NO_PRODUCER, NO_SEQUENCE, TRANSACTIONAL
from quorumlog.records.control import control_batch, decode_control
from quorumlog_broker.coordinator.turn import Producer, Write

RECORD_OVERHEAD = 32  # bytes at most beside key and value: five varints of 5, attributes, and some to spare


class Batched(NamedTuple):
    """data: one batch, its offsets from 0. records: how many it holds."""

    data: bytes
    records: int


def record_bytes(key: bytes, value: bytes | None) -> int:
    """What a record takes at most."""
    return RECORD_OVERHEAD + len(key) + len(value or b"")


def batches_of(writes: Sequence[Write], max_bytes: int, timestamp_ms: int) -> Iterator[Batched]:
    """A record that does not fit has a batch of its own."""
    batch: list[Row] = []
    size, producer = BATCH_OVERHEAD, None
    for write in writes:
        added = record_bytes(write.key, write.value)
        if batch and (size + added > max_bytes or write.producer != producer or write.is_control):
            yield _sealed(batch, producer)
            batch, size = [], BATCH_OVERHEAD
        producer = write.producer
        if write.is_control:
            yield _marker(write, timestamp_ms)
            continue
        batch.append((timestamp_ms, write.key, write.value, ()))
        size += added
    if batch:
        yield _sealed(batch, producer)


def _sealed(rows: list[Row], producer: Producer | None) -> Batched:
    batch = lay_out_rows(rows)
    if producer is None:
        return Batched(bytes(batch.seal(NO_PRODUCER, -1, NO_SEQUENCE)), len(rows))
    batch.attributes |= TRANSACTIONAL
    return Batched(bytes(batch.seal(producer.producer_id, producer.producer_epoch, NO_SEQUENCE)), len(rows))


def _marker(write: Write, timestamp_ms: int) -> Batched:
    assert write.producer is not None
    marker = decode_control(write.key, write.value)
    producer_id, epoch = write.producer
    data = control_batch(
        [marker], base_offset=0, timestamp_ms=timestamp_ms, producer_id=producer_id, producer_epoch=epoch
    )
    return Batched(data, 1)
