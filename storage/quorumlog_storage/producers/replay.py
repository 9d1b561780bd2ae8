"""Reads the producer state, and what transactions have become, back from the batches of a log.

The marker that ends a transaction in one partition is Kafka's `EndTxnMarker`.

`ScannedProducers` is for a log that is scanned after a crash: it is made from the bytes that the scan reads. Without it
the batches behind the newest snapshot would be read a second time (quorumlog_storage/producers/log_producers.py, rule
3): in a segment that was written to, all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from quorumlog.errors import ApiError
from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords, decode_batch, parse_header
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.format.batch import NO_PRODUCER, BatchHeader
from quorumlog_storage.files.disk import Buffer, Disk, FileMissing
from quorumlog_storage.files.names import parse_snapshot_name, snapshot_name
from quorumlog_storage.producers.producer_snapshot import CorruptSnapshot, decode_snapshot
from quorumlog_storage.producers.producer_state import ProducerStates
from quorumlog_storage.producers.transactions import NEVER, EndedTransaction
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.segment.transaction_index import AbortedTransaction


def marker_in(data: Buffer) -> EndTxnMarker | None:
    """The marker of a whole control batch.

    None: the batch is empty, because compaction removed the marker with its transaction; or it holds something else,
    which ends no transaction. Damaged bytes are told by the readers of the log, and end no transaction either.
    """
    try:
        for record in decode_batch(data, parse_header(data)):
            found = decode_control(record.key, record.value)
            return found if isinstance(found, EndTxnMarker) else None
    except (CorruptRecords, ApiError):
        pass
    return None


def marker_of(batch: StoredBatch) -> EndTxnMarker | None:
    """The marker that a batch holds; None: it is no marker."""
    if not batch.is_control or batch.producer_id == NO_PRODUCER:
        return None
    return marker_in(b"".join(batch.parts))


def follow(segment: Segment, start: Offset, end: Offset, states: ProducerStates) -> Iterator[EndedTransaction]:
    """Note every batch of a segment from `start` on that begins before `end`; the transactions that ended there.

    Raises CorruptBatch where a batch is unreadable, DiskError.
    """
    for position, header in segment.log.walk(segment.find(start, segment.size), segment.size):
        if header.base_offset >= end:
            return
        marker = None
        if header.is_control and header.producer_id != NO_PRODUCER:
            marker = marker_in(segment.log.read(position, header.size))
        ended = states.note(header, marker)
        if ended is not None:
            yield ended


def replay(segment: Segment, start: Offset, states: ProducerStates) -> list[EndedTransaction]:
    """`follow` to the end of a segment.

    Where a batch is unreadable, the rest of the segment is left out: reading the log reports it.
    """
    found: list[EndedTransaction] = []
    try:
        for ended in follow(segment, start, NEVER, states):
            found.append(ended)
    except CorruptBatch:
        pass
    return found


def replay_all(
    segments: Sequence[Segment], start: Offset, end_offset: Offset, states: ProducerStates
) -> list[EndedTransaction]:
    """`replay` of [start, end_offset), which are offsets at which a batch begins."""
    ended: list[EndedTransaction] = []
    for number, segment in enumerate(segments):
        if segment.base_offset >= end_offset:
            break
        is_last = number == len(segments) - 1
        if (end_offset if is_last else segments[number + 1].base_offset) > start:
            ended += replay(segment, start, states)
    return ended


def aborted(ended: Iterable[EndedTransaction]) -> list[AbortedTransaction]:
    return [AbortedTransaction(*end[:4]) for end in ended if not end.committed]


class ScannedProducers:
    """Changes nothing on the disk.

    begun_at: offset of the snapshot that the state began with, 0 for none; it counts only if the log turns out to reach
    that far. None: nothing was scanned. ended: the transactions that ended in each scanned segment, by its base.
    """

    def __init__(self, disk: Disk, path: str, retired: Sequence[Segment] = ()) -> None:
        """retired: the segments before the log's start, which only the producers still need."""
        self._disk, self._path, self._retired = disk, path, tuple(retired)
        self.begun_at: Offset | None = None
        self.states = ProducerStates()
        self.ended: dict[Offset, list[EndedTransaction]] = {}

    def begin(self, before: Sequence[Segment], base_offset: Offset) -> None:
        """A scan begins at `base_offset`, behind these segments, which it trusts. What an earlier one found is dropped.

        Raises DiskError.
        """
        trusted = (*self._retired, *before)
        self.begun_at, self.states = self._newest_snapshot(trusted[0].base_offset if trusted else base_offset)
        self.ended = {}
        if trusted and self.begun_at < base_offset:
            replay_all(trusted, self.begun_at, base_offset, self.states)

    def begin_segment(self, base_offset: Offset) -> None:
        self.ended[base_offset] = []

    def note(self, base_offset: Offset, header: BatchHeader, data: Buffer) -> None:
        """A valid batch of the segment with this base. data: all its bytes."""
        assert self.begun_at is not None, "begin comes first"
        if header.producer_id == NO_PRODUCER or header.last_offset < self.begun_at:
            return
        end = self.states.note(header, marker_in(data) if header.is_control else None)
        if end is not None:
            self.ended[base_offset].append(end)

    def _newest_snapshot(self, log_base: Offset) -> tuple[Offset, ProducerStates]:
        """log_base: of the log's first segment. Snapshots before it do not count."""
        offsets = [parse_snapshot_name(name) for name in self._disk.list(self._path)]
        for offset in sorted((o for o in offsets if o is not None and o >= log_base), reverse=True):
            path = f"{self._path}/{snapshot_name(offset)}"
            try:
                return offset, ProducerStates(decode_snapshot(path, self._disk.read_bytes(path)), offset)
            except (CorruptSnapshot, FileMissing):
                continue
        return 0, ProducerStates()
