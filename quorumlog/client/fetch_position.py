"""The read position in each partition. Pure: fetch responses go in, the next offset to fetch comes out.

Rules: a position moves only by whole batches received in order. Records of the first batch that lie below the position
are dropped on decoding. The position carries `last_epoch`, so that a leader can tell a reader that the records it read
were truncated later (KIP-320).
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.messages.buffer import Buffer
from quorumlog.records import CorruptRecords, iter_headers, verify_crc

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Whole batches as received. `records` may be a view that keeps the whole response in memory.

    Records below `first_offset`, and at or above `stop_offset`, are not wanted.
    """

    topic: str
    partition: int
    records: Buffer
    first_offset: Offset
    stop_offset: Offset  # exclusive
    next_offset: Offset  # first offset of the next chunk
    high_watermark: Offset


@dataclass(slots=True)
class Position:
    """One assigned partition. stop_offset: exclusive; None: read on without end.

    A position does not leave `broken`; a new assignment makes a new position.
    """

    topic: str
    partition: int
    next_offset: Offset
    stop_offset: Offset | None = None
    last_epoch: Epoch = NO_EPOCH
    high_watermark: Offset = -1
    buffered_bytes: int = 0  # received and not yet taken by the reader
    fetching: bool = False
    not_before_ms: int = 0
    failures: int = 0
    broken: Exception | None = None  # nothing can be read at `next_offset`, and nothing is fetched any more

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def finished(self) -> bool:
        """True once everything before `stop_offset` has been received."""
        return self.stop_offset is not None and self.next_offset >= self.stop_offset

    @property
    def lag(self) -> int:
        """Records between the position and the last known high watermark; -1: not known."""
        return -1 if self.high_watermark < 0 else max(0, self.high_watermark - self.next_offset)

    def received(self, records: Buffer, high_watermark: Offset, *, check_crcs: bool) -> Chunk | None:
        """Move past the batches in `records`; an incomplete batch at the end is ignored. None if there is no new batch.

        Batches before a corrupt one are taken. If it is the first new one, raises CorruptRecords and does not move.
        """
        self.failures = 0
        self.high_watermark = high_watermark
        next_offset, epoch = self.next_offset, self.last_epoch
        try:
            for header in iter_headers(records, partial_tail=True):
                if check_crcs:
                    verify_crc(records, header)
                if header.next_offset > next_offset:
                    next_offset, epoch = header.next_offset, header.leader_epoch
        except CorruptRecords as error:
            if next_offset == self.next_offset:
                raise
            records = memoryview(records)[: error.position]
        if next_offset == self.next_offset:
            return None
        first = self.next_offset
        self.next_offset, self.last_epoch = next_offset, epoch
        self.buffered_bytes += len(records)
        return Chunk(
            topic=self.topic,
            partition=self.partition,
            records=records,
            first_offset=first,
            stop_offset=next_offset if self.stop_offset is None else min(next_offset, self.stop_offset),
            next_offset=next_offset,
            high_watermark=high_watermark,
        )

    def reset(self, offset: Offset) -> None:
        """Continue at `offset`, whose leader epoch is not known."""
        self.next_offset, self.last_epoch = offset, NO_EPOCH
