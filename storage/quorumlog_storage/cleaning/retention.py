"""Which records and batches stay (Kafka's `Cleaner.shouldRetainRecord` and `checkBatchRetention`; KIP-534).

Records: one after the end of the map stays. One without a key goes: nothing could ever replace it. Otherwise it stays
if the map knows no newer one of its key. A tombstone, a record without a value, also goes once the delete horizon of
its batch has passed; before that every consumer may learn from it that the key was deleted.

The horizon is set by the first round that meets a tombstone which stays, or a marker whose transaction has no data any
more: `now + delete.retention.ms`. So the time begins when everything older of that key is gone, and no consumer that
started before can miss the deletion.

Batches: one whose records are all gone goes too, except that it stays empty, so that its offsets and sequences are
still known, if it is

- the last one of an active producer, so that its next retry is still recognized after a rebuild from the log;
- the last one of a group of segments: a segment ends where the next one begins, and the log keeps its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.format.batch import NO_PRODUCER, NO_TIMESTAMP, BatchHeader
from quorumlog_storage.cleaning.marks import NEEDS_HORIZON
from quorumlog_storage.cleaning.offset_map import OffsetMap
from quorumlog_storage.cleaning.record_table import NO_KEY, RecordTable


class LastWrite(NamedTuple):
    """What a producer wrote last. last_offset: of its last batch with data; -1: it is not known."""

    epoch: int
    last_offset: Offset


class Kept(NamedTuple):
    """What stays of a batch. ranges: bytes of `data` with the records that stay, as pairs (start, end) in order, flat.
    They are not filled in where all or none stay and no tombstone is among them.
    """

    ranges: list[int]
    records: int
    has_tombstone: bool  # among those that the map covers
    keyless: int  # records that went because they have no key
    data: bytes | bytearray = b""
    largest_delta: int | None = None  # of the timestamps of those that stay; None: not looked for


def is_last_write(header: BatchHeader, last_writes: Mapping[int, LastWrite]) -> bool:
    """True if the batch must stay, with or without records, because its producer is remembered by it."""
    last = last_writes.get(header.producer_id) if header.producer_id != NO_PRODUCER else None
    if last is None:
        return False
    if last.last_offset >= 0:
        return header.last_offset == last.last_offset
    return header.is_control and header.producer_epoch == last.epoch


def has_passed(header: BatchHeader, now_ms: int) -> bool:
    """True if the batch has a delete horizon and it is not in the future."""
    return header.has_delete_horizon and header.base_timestamp != NO_TIMESTAMP and now_ms >= header.base_timestamp


def kept_records(
    table: RecordTable, base_offset: Offset, offsets: OffsetMap, latest: Offset, *, drop_tombstones: bool
) -> Kept:
    """latest: the last offset that the map covers, inclusive. drop_tombstones: `has_passed` for their batch."""
    data, starts, deltas, keys, key_ends = table.data, table.starts, table.deltas, table.keys, table.key_ends
    has_value, get = table.has_value, offsets.get
    ranges: list[int] = []
    count, tombstones, keyless, open_at = 0, 0, 0, -1
    for row in range(table.count):
        offset = base_offset + deltas[row]
        if offset > latest:
            keeps = True
        elif (key := keys[row]) == NO_KEY:
            keyless += 1
            keeps = False
        else:
            keeps = offset >= get(data[key : key_ends[row]]) and not (drop_tombstones and not has_value[row])
        if keeps:
            count += 1
            tombstones += not has_value[row] and offset <= latest
            if open_at < 0:
                open_at = starts[row]
        elif open_at >= 0:
            ranges += (open_at, starts[row])
            open_at = -1
    if open_at >= 0:
        ranges += (open_at, starts[table.count])
    return Kept(ranges, count, tombstones > 0, keyless, table.data)


def marked_records(table: RecordTable, states: bytes | bytearray, at: int) -> Kept:
    """The same by the marks of pass 1. at: of the batch's base offset among `states`."""
    starts, deltas = table.starts, table.deltas
    ranges: list[int] = []
    count, tombstones, open_at = 0, 0, -1
    for row in range(table.count):
        state = states[at + deltas[row]]
        if state:
            count += 1
            tombstones += state == NEEDS_HORIZON
            if open_at < 0:
                open_at = starts[row]
        elif open_at >= 0:
            ranges += (open_at, starts[row])
            open_at = -1
    if open_at >= 0:
        ranges += (open_at, starts[table.count])
    return Kept(ranges, count, tombstones > 0, 0, table.data)
