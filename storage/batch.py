"""A batch as it is handed to a log: the buffers to write and the few numbers that the log needs of them.

The leader stamps what a producer sent (17 new bytes and a view of the rest), a follower stores what the leader stamped,
so both are lists of buffers that are written as they are: received bytes are never changed or copied (DESIGN §6).
Checksums were verified by whoever received the bytes; the log verifies them when it recovers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorumlog.ids import Epoch, Offset
from quorumlog.records.batch import NO_PRODUCER, NO_SEQUENCE, BatchHeader, headers, stamp
from storage.disk import Buffer


class StoredBatch(NamedTuple):
    """One record batch, stamped. size: bytes of all parts together, header included."""

    parts: tuple[Buffer, ...]
    size: int
    base_offset: Offset
    last_offset: Offset  # inclusive
    leader_epoch: Epoch
    max_timestamp: int  # milliseconds since 1970
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE

    @property
    def next_offset(self) -> Offset:
        return self.last_offset + 1


def stamped_batches(
    data: Buffer, produced: Iterable[BatchHeader], base_offset: Offset, leader_epoch: Epoch
) -> list[StoredBatch]:
    """What a leader appends: each batch of `data` in turn gets the next offsets, from `base_offset`, and the epoch.

    produced: the headers of `data`, as validated; the offsets in them are the client's and are ignored.
    """
    stored = []
    for header in produced:
        parts = stamp(data, header, base_offset, leader_epoch)
        stored.append(_stored(parts, header, base_offset, leader_epoch))
        base_offset += header.last_offset_delta + 1
    return stored


def received_batches(data: Buffer, found: Iterable[BatchHeader] | None = None) -> list[StoredBatch]:
    """What a follower appends: the batches of a fetch answer as the leader stamped them.

    found: headers of `data`, of those batches that are wanted; None: all that are there. Raises CorruptRecords.
    """
    view = memoryview(data)
    return [
        _stored((view[header.position : header.end],), header, header.base_offset, header.leader_epoch)
        for header in (headers(data) if found is None else found)
    ]


def _stored(parts: tuple[Buffer, ...], header: BatchHeader, base_offset: Offset, leader_epoch: Epoch) -> StoredBatch:
    return StoredBatch(
        parts,
        header.size,
        base_offset,
        base_offset + header.last_offset_delta,
        leader_epoch,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )
