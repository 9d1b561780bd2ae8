"""Batches of values alone, as the metadata log and its snapshots hold them."""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import Epoch, Offset
from quorumlog.records.format.batch import NO_PRODUCER, NO_SEQUENCE, seal
from quorumlog.records.format.record import value_alone


def encode_values(values: Sequence[bytes], offset: Offset, epoch: Epoch, timestamp_ms: int) -> bytes:
    """One batch, uncompressed, without keys: the bytes of `encode_batch`, at a third of its cost."""
    return seal(
        b"".join([value_alone(value, index) for index, value in enumerate(values)]),
        base_offset=offset,
        leader_epoch=epoch,
        attributes=0,
        last_offset_delta=len(values) - 1,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        producer_id=NO_PRODUCER,
        producer_epoch=-1,
        base_sequence=NO_SEQUENCE,
        count=len(values),
    )
