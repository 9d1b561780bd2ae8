"""`<offset>.snapshot`: the producer state of a log before an offset, so that a start need not read the whole log.

Layout: Kafka's `ProducerSnapshot`. Kafka keeps a producer's newest batch only, and after a restart refuses
a repetition of the four before it. We write an entry for each remembered batch, oldest first: a reader that takes a
producer's last entry, as Kafka does, finds what it expects, and we find all five (docs/decisions/0003).

The file is written in place; its checksum is what rejects a torn one.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from quorumlog.records.format.batch import NO_SEQUENCE
from quorumlog.records.format.crc import crc32c
from quorumlog_storage.producers.producer_state import NO_OFFSET, REMEMBERED_BATCHES, ProducerEntry, Remembered

VERSION = 1

_HEAD = Struct(">hIi")  # version, checksum of what follows it, count of entries
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")  # id, epoch, a batch's four numbers, coordinator epoch, first offset of a transaction
_CHECKED_FROM = 6

assert _HEAD.size == 10 and _ENTRY.size == 46


class CorruptSnapshot(Exception):
    """A snapshot with an impossible content. It is deleted, and the log is read instead."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; it is deleted, and rebuilt from the log")
        self.path, self.reason = path, reason


def encode_snapshot(entries: Mapping[int, ProducerEntry]) -> bytes:
    """The content of a snapshot file; the entries keep their order."""
    rows = [
        _ENTRY.pack(producer_id, entry.epoch, *batch, entry.coordinator_epoch, entry.first_offset)
        for producer_id, entry in entries.items()
        for batch in _rows_of(entry)
    ]
    checked = b"".join((_COUNT.pack(len(rows)), *rows))
    return _HEAD.pack(VERSION, crc32c(checked), len(rows)) + checked[_COUNT.size :]


def decode_snapshot(path: str, content: bytes) -> dict[int, ProducerEntry]:
    """Raises CorruptSnapshot."""
    if len(content) < _HEAD.size:
        raise CorruptSnapshot(path, f"{len(content)} bytes")
    version, crc, count = _HEAD.unpack_from(content)
    if version != VERSION:
        raise CorruptSnapshot(path, f"version {version}")
    if crc != crc32c(memoryview(content)[_CHECKED_FROM:]):
        raise CorruptSnapshot(path, "its checksum is wrong")
    if count < 0 or len(content) != _HEAD.size + count * _ENTRY.size:
        raise CorruptSnapshot(path, f"{count} entries in {len(content)} bytes")
    entries: dict[int, ProducerEntry] = {}
    for row in _ENTRY.iter_unpack(memoryview(content)[_HEAD.size :]):
        producer_id, epoch, batch, coordinator_epoch, first_offset = row[0], row[1], Remembered(*row[2:6]), *row[6:]
        if first_offset < NO_OFFSET:
            raise CorruptSnapshot(path, f"producer {producer_id} has a transaction open from offset {first_offset}")
        batches = _joined(entries.pop(producer_id, None), epoch, batch)
        entries[producer_id] = ProducerEntry(epoch, batches, batch.timestamp, coordinator_epoch, first_offset)
    return entries


def _rows_of(entry: ProducerEntry) -> tuple[Remembered, ...]:
    """What the rows of a producer say of its batches, the newest last. That row has the time of the last batch of any
    kind: Kafka writes the time of a marker there, too."""
    if not entry.batches:
        return (Remembered(NO_SEQUENCE, NO_OFFSET, 0, entry.timestamp),)
    *older, newest = entry.batches
    return (*older, newest._replace(timestamp=entry.timestamp))


def _joined(entry: ProducerEntry | None, epoch: int, batch: Remembered) -> tuple[Remembered, ...]:
    """The batches of the rows read so far. Another epoch, or a row without a batch, drops those before it."""
    if batch.last_offset < 0:
        return ()
    known = entry.batches if entry is not None and entry.epoch == epoch else ()
    return (*known[-(REMEMBERED_BATCHES - 1) :], batch)
