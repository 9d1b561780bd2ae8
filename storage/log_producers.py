"""The producer state of one log: updated by appends, saved in snapshots, and rebuilt after a start or a truncation.

Rules:

1. A snapshot is written where a segment begins and at a clean close. Its bytes are durable with the next sync.
2. A snapshot past the log's end describes records that are gone. Its name is gone from the disk before other records
   take their offsets: `cut` and `clear` only unlink, the caller syncs the directory before it appends.
3. What comes after the newest snapshot is read from the batch headers. An unreadable snapshot is deleted and an older
   one taken. If a batch is unreadable too, the rest of its segment is left out: reading the log reports it.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import Offset
from storage.disk import Disk, write_fully
from storage.log_file import CorruptBatch
from storage.names import parse_snapshot_name, snapshot_name
from storage.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from storage.producer_state import ProducerEntry, ProducerStates
from storage.segment import Segment


class LogProducers:
    """Open with `LogProducers.load`. Any thread may call `entry`, only the log's writer the rest."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.states = ProducerStates()
        self._disk, self._path = disk, path
        self._snapshots: list[Offset] = []  # ascending
        self._unsynced: list[Offset] = []  # of the snapshots

    @classmethod
    def load(cls, disk: Disk, path: str, segments: Sequence[Segment], end_offset: Offset) -> LogProducers:
        """The state at `end_offset` of a recovered log. Stray snapshots are removed durably. Raises DiskError."""
        producers = cls(disk, path)
        offsets = [parse_snapshot_name(name) for name in disk.list(path)]
        producers._snapshots = [offset for offset in offsets if offset is not None]
        if producers._remove_strays(segments, end_offset):
            disk.sync_directory(path)
        producers._rebuild(segments, end_offset)
        return producers

    def entry(self, producer_id: int) -> ProducerEntry | None:
        return self.states.entries.get(producer_id)

    def save(self, offset: Offset) -> None:
        """Write the snapshot of all batches before `offset`, if there is none. `sync` makes its bytes durable."""
        if offset in self._snapshots:
            return
        path = self._file_path(offset)
        file = self._disk.open(path, create=True)
        file.truncate(0)
        write_fully(file, path, [encode_snapshot(self.states.entries)], 0)
        file.close()
        self._snapshots.append(offset)
        self._unsynced.append(offset)

    def sync(self) -> None:
        for offset in self._unsynced:
            file = self._disk.open(self._file_path(offset))
            file.sync()
            file.close()
        self._unsynced.clear()

    def cut(self, end_offset: Offset) -> None:
        """The log will end at `end_offset`: remove later snapshots. `reload` follows once the segments are cut."""
        for offset in [offset for offset in self._snapshots if offset > end_offset]:
            self._remove(offset)

    def reload(self, segments: Sequence[Segment], end_offset: Offset) -> None:
        """The log ends at `end_offset` now. The state is rebuilt if a batch of a producer was cut."""
        if self.states.end_offset > end_offset:
            self._rebuild(segments, end_offset)

    def clear(self) -> None:
        """The log is emptied: forget all producers and remove all snapshots."""
        self.states = ProducerStates()
        for offset in list(self._snapshots):
            self._remove(offset)

    def start_at(self, base_offset: Offset, end_offset: Offset) -> None:
        """Segments before `base_offset` are about to go, and their snapshots with them. The log ends at `end_offset`.

        What only those segments say is kept in a snapshot, which is durable before they go (rule 4).
        """
        if not any(offset >= base_offset for offset in self._snapshots):
            self.save(end_offset)
            self.sync()
        for offset in [offset for offset in self._snapshots if offset < base_offset]:
            self._remove(offset)

    def expire(self, now_ms: int, max_silence_ms: int) -> None:
        """See `ProducerStates.expire`."""
        self.states.expire(now_ms, max_silence_ms)

    # --- details ---

    def _rebuild(self, segments: Sequence[Segment], end_offset: Offset) -> None:
        start, states = self._newest(segments[0].base_offset, end_offset)
        for number, segment in enumerate(segments):
            is_last = number == len(segments) - 1
            if (end_offset if is_last else segments[number + 1].base_offset) > start:
                _replay(segment, start, states)
        self.states = states

    def _newest(self, base_offset: Offset, end_offset: Offset) -> tuple[Offset, ProducerStates]:
        """The newest readable snapshot between these, inclusive; an empty state at offset 0 if there is none."""
        for offset in reversed([offset for offset in self._snapshots if base_offset <= offset <= end_offset]):
            path = self._file_path(offset)
            try:
                return offset, ProducerStates(decode_snapshot(path, self._disk.read_bytes(path)), offset)
            except CorruptSnapshot:
                self._remove(offset)
        return 0, ProducerStates()

    def _remove_strays(self, segments: Sequence[Segment], end_offset: Offset) -> bool:
        """Keep the snapshots at the start of a segment, and the newest one. True if any was removed."""
        bases = {segment.base_offset for segment in segments}
        usable = [offset for offset in self._snapshots if offset <= end_offset]
        strays = [o for o in self._snapshots if o > end_offset or (o not in bases and o != usable[-1])]
        for offset in strays:
            self._remove(offset)
        return bool(strays)

    def _remove(self, offset: Offset) -> None:
        self._snapshots.remove(offset)
        self._unsynced = [unsynced for unsynced in self._unsynced if unsynced != offset]
        self._disk.unlink(self._file_path(offset))

    def _file_path(self, offset: Offset) -> str:
        return f"{self._path}/{snapshot_name(offset)}"


def _replay(segment: Segment, start: Offset, states: ProducerStates) -> None:
    """Note every batch of a segment from `start` on."""
    try:
        for _, header in segment.log.walk(segment.find(start, segment.size), segment.size):
            states.note(header)
    except CorruptBatch:
        return
