"""A batch as it is handed to a log: the buffers to write, and the numbers of its header that the log needs.

The leader stamps what a producer sent: 17 new bytes and a view of the rest. A follower stores what the leader stamped.
Both are lists of buffers that are written as they are: what was received is neither changed nor copied.
Where the leader has to set a field, it has made a new batch before (decision 92).
The code that received the bytes has verified their checksums; the log verifies them again when it recovers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorumlog.ids import Epoch, Offset
from quorumlog.records.format.batch import (
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    NO_PRODUCER,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    headers,
    stamp,
)
from quorumlog_storage.files.disk import Buffer


class StoredBatch(NamedTuple):
    """One record batch, stamped. size: bytes of all parts together, header included."""

    parts: tuple[Buffer, ...]
    size: int
    base_offset: Offset
    last_offset: Offset  # inclusive
    leader_epoch: Epoch
    max_timestamp: int  # ms since 1970; the append time of every record where is_log_append_time
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    attributes: int = 0
    base_timestamp: int = NO_TIMESTAMP  # ms since 1970; -1 where there are no records
    record_count: int = 0  # may be below last_offset - base_offset + 1 after compaction

    @property
    def next_offset(self) -> Offset:
        return self.last_offset + 1

    @property
    def codec(self) -> int:
        """A `Codec`."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)


def stamped_batches(
    data: Buffer, produced: Iterable[BatchHeader], base_offset: Offset, leader_epoch: Epoch
) -> list[StoredBatch]:
    """What a leader appends: each batch of `data` in turn gets the next offsets, from `base_offset`, and the epoch.

    produced: the headers of `data`, as validated. The offsets in them are the client's and are ignored.
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
    """Made by `tuple.__new__`, in half the time of the constructor, because one is made for every batch."""
    return tuple.__new__(
        StoredBatch,
        (
            parts,
            header.size,
            base_offset,
            base_offset + header.last_offset_delta,
            leader_epoch,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.attributes,
            header.base_timestamp,
            header.count,
        ),
    )
