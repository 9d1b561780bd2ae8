"""A batch whose records are encoded already and whose header is written later.

An idempotent producer assigns a batch's sequence number when it sends the batch, long after it encoded the columns.
Writing the header in place then saves the second checksum and the copy that a new header in front of a finished batch
would need: 100-byte records, held until acknowledged, took 79 ns each to encode and 55 more for the number; now 67 in
all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorumlog.ids import NO_EPOCH, Epoch
from quorumlog.records.format.batch import BATCH_OVERHEAD, Codec, header_bytes
from quorumlog.records.format.compression import compress
from quorumlog.records.format.record import RecordHeaders, write_fields
from quorumlog.records.rowwise.plain import attributes_of, check_timestamps

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class UnsealedBatch:
    """buffer: BATCH_OVERHEAD bytes for the header, then the records as stored (compressed if `attributes` says so)."""

    buffer: memoryview
    count: int  # of records, at least 1
    attributes: int
    base_timestamp: int  # ms, of the first record
    max_timestamp: int  # ms
    given_away: bool = False  # by `seal`

    def seal(
        self, producer_id: int, producer_epoch: int, base_sequence: int, leader_epoch: Epoch = NO_EPOCH
    ) -> memoryview:
        """The batch at base offset 0, with this producer and sequence.

        The first call writes the header in place. A later call makes a copy, because the first batch may still be on
        its way to a socket and must not change.
        """
        batch = memoryview(bytearray(self.buffer)) if self.given_away else self.buffer
        self.given_away = True
        batch[:BATCH_OVERHEAD] = header_bytes(
            batch[BATCH_OVERHEAD:],
            base_offset=0,
            leader_epoch=leader_epoch,
            attributes=self.attributes,
            last_offset_delta=self.count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            count=self.count,
        )
        return batch


def compressed(codec: Codec, batch: memoryview) -> memoryview:
    """`batch` (BATCH_OVERHEAD bytes, then records) with its records compressed by this codec."""
    if codec == Codec.NONE:
        return batch
    return memoryview(bytearray(BATCH_OVERHEAD) + compress(codec, batch[BATCH_OVERHEAD:]))


Row = tuple[int, bytes | None, bytes | None, RecordHeaders]  # timestamp in ms, key, value, headers


def lay_out_rows(rows: Sequence[Row], codec: Codec = Codec.NONE) -> UnsealedBatch:
    """One batch of all rows (at least one), in order. Raises ApiError INVALID_TIMESTAMP.

    The bytes are those of `encode_batch`, which is the oracle. This takes half the time (0.74 us for 100 bytes),
    because it makes no Record objects and does not check their order.
    """
    timestamps = [row[0] for row in rows]
    largest = max(timestamps)
    check_timestamps(min(timestamps), largest)
    out = bytearray(BATCH_OVERHEAD)
    for offset_delta, (timestamp, key, value, headers) in enumerate(rows):
        write_fields(out, timestamp - timestamps[0], offset_delta, key, value, headers)
    return UnsealedBatch(
        compressed(codec, memoryview(out)),
        count=len(rows),
        attributes=attributes_of(codec),
        base_timestamp=timestamps[0],
        max_timestamp=largest,
    )
