"""The producer state of a log that is scanned after a crash, made from the bytes that the scan reads.

Without it the batches behind the newest snapshot would be read a second time
(quorumlog_storage/producers/log_producers.py, rule 3): in a segment that was written to, all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import Offset
from quorumlog.records.batch import NO_PRODUCER, BatchHeader
from quorumlog_storage.files.disk import Buffer, Disk, FileMissing
from quorumlog_storage.files.names import parse_snapshot_name, snapshot_name
from quorumlog_storage.producers.marker import marker_in
from quorumlog_storage.producers.producer_snapshot import CorruptSnapshot, decode_snapshot
from quorumlog_storage.producers.producer_state import ProducerStates
from quorumlog_storage.producers.replay import replay_all
from quorumlog_storage.producers.transactions import EndedTransaction
from quorumlog_storage.segment.segment import Segment


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
