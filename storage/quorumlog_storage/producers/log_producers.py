"""The producer state of one log: updated by appends, saved in snapshots, and rebuilt after a start or a truncation.

Rules:

1. A snapshot is written where a segment begins and at a clean close. Its bytes are durable with the next sync.
2. A snapshot past the log's end describes records that are gone. Its name is gone from the disk before other records
   take their offsets: `cut` and `clear` only unlink, the caller syncs the directory before it appends.
3. What comes after the newest snapshot is read from the batch headers. An unreadable snapshot is deleted and an older
   one taken. If a batch is unreadable too, the rest of its segment is left out: reading the log reports it.
4. The state fills the transaction indexes of the segments: at each append; at a start where a segment was scanned, or
   where an index is not as the log noted it (quorumlog_storage/producers/index_note.py); and where a reader found that
   an index contradicts the log (`build_index`). That needs the transactions which were open where the segment begins;
   its snapshot tells them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorumlog.ids import Offset
from quorumlog.records.format.batch import CONTROL
from quorumlog_storage.files.disk import Disk, FileMissing, write_fully
from quorumlog_storage.files.names import parse_snapshot_name, snapshot_name
from quorumlog_storage.producers.index_note import Fingerprint, read_note, write_note
from quorumlog_storage.producers.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from quorumlog_storage.producers.producer_state import NO_COORDINATOR_EPOCH, ProducerEntry, ProducerStates
from quorumlog_storage.producers.replay import ScannedProducers, aborted, follow, marker_of, replay, replay_all
from quorumlog_storage.producers.transactions import NEVER, EndedTransaction, Unstable
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.segment.transaction_index import AbortedTransaction, CorruptTransactionIndex


class LogProducers:
    """Open with `LogProducers.load`. Any thread may call `entry`, `unstable`, `aborted_in`, only the writer the rest.

    replicated_end: a high watermark of this log, set by whoever knows it.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self.states = ProducerStates()
        self.replicated_end: Offset = 0
        self._disk, self._path = disk, path
        self._noted: dict[Offset, Fingerprint] | None = None  # of transaction indexes, as on disk; None: not there
        self._snapshots: list[Offset] = []  # ascending
        self._unsynced: list[Offset] = []  # of the snapshots

    @classmethod
    def beside(cls, disk: Disk, path: str) -> LogProducers:
        """For a reader that changes nothing: it knows the snapshots of a log, and no state. Raises DiskError."""
        producers = cls(disk, path)
        offsets = [parse_snapshot_name(name) for name in disk.list(path)]
        producers._snapshots = [offset for offset in offsets if offset is not None]
        return producers

    @classmethod
    def load(
        cls,
        disk: Disk,
        path: str,
        segments: Sequence[Segment],
        end_offset: Offset,
        scanned: ScannedProducers | None = None,
        *,
        unsynced_from: Offset | None = None,
    ) -> LogProducers:
        """The state at `end_offset` of a recovered log. Stray snapshots are removed durably. Raises DiskError.

        scanned: what a scan up to there has noted on its way.
        unsynced_from: snapshots from this offset on may not be durable, and torn ones are strays, too; None: all are.
        """
        producers = cls.beside(disk, path)
        has_removed = producers._remove_strays(segments, end_offset)
        if unsynced_from is not None:
            has_removed = producers._take_over_unsynced(unsynced_from) or has_removed
        if has_removed:
            disk.sync_directory(path)
        producers._noted = read_note(disk, path)
        producers._distrust_indexes(segments)
        producers._rebuild(segments, end_offset, scanned)
        if producers._noted is None and producers._has_markers:
            producers._adopt_indexes(segments)
        return producers

    @property
    def unstable(self) -> Unstable:
        return self.states.transactions.unstable

    def entry(self, producer_id: int) -> ProducerEntry | None:
        return self.states.entries.get(producer_id)

    def appended(self, segment: Segment, batches: Sequence[StoredBatch]) -> None:
        """`batches` are in the segment now, which is the log's last one."""
        states = self.states
        ended: list[EndedTransaction] | None = None
        for batch in batches:
            if not batch.attributes & CONTROL:
                states.note(batch)
                continue
            states.transactions.forget_replicated(self.replicated_end)
            end = states.note(batch, marker_of(batch))
            ended = ended or []
            if end is not None:
                ended.append(end)
        if ended is not None:
            segment.transactions.add(aborted(ended))

    def save(self, offset: Offset) -> bool:
        """Write the snapshot of all batches before `offset`, if there is none: then True. `sync` makes its bytes
        durable."""
        if offset in self._snapshots:
            return False
        path = self._file_path(offset)
        file = self._disk.open(path, create=True)
        file.truncate(0)
        write_fully(file, path, [encode_snapshot(self.states.entries)], 0)
        file.close()
        self._snapshots.append(offset)
        self._unsynced.append(offset)
        return True

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
        elif segments[-1].transactions.must_build:
            self.build_index(segments, len(segments) - 1)

    # --- transaction indexes ---

    def note_index(self, segment: Segment, segments: Sequence[Segment]) -> None:
        """The caches of `segment` were flushed. Lines of segments that have left the log go, too. Raises DiskError."""
        index, bases = segment.transactions, {one.base_offset for one in segments}
        noted = {base: line for base, line in (self._noted or {}).items() if base in bases}
        noted.pop(segment.base_offset, None)
        if index.has_entries:
            noted[segment.base_offset] = index.fingerprint
        if noted != self._noted and (noted or self._noted or self._has_markers):
            self._noted = noted
            write_note(self._disk, self._path, noted)

    def aborted_in(self, segments: Sequence[Segment], number: int) -> list[AbortedTransaction]:
        """What the log itself says of a segment; reads from the newest snapshot before it on. Changes nothing."""
        base = segments[number].base_offset
        start, states = self._at(segments, base)
        replay_all(segments[:number], start, base, states)
        return aborted(replay(segments[number], base, states))

    def first_open_at(self, segments: Sequence[Segment], end_offset: Offset) -> Offset:
        """Where the earliest transaction begins that is open at `end_offset`; NEVER where none is. Changes nothing.

        Raises CorruptBatch, DiskError.
        """
        start, states = self._at(segments, end_offset)
        for number, segment in enumerate(segments):
            next_base = segments[number + 1].base_offset if number + 1 < len(segments) else NEVER
            if next_base > start and segment.base_offset < end_offset:
                for _ in follow(segment, start, end_offset, states):
                    pass
        return states.transactions.unstable.first_open

    def snapshot_at(self, offset: Offset) -> ProducerStates | None:
        """The state at the snapshot of exactly this offset; None without a readable one. For any thread."""
        path = self._file_path(offset)
        try:
            return ProducerStates(decode_snapshot(path, self._disk.read_bytes(path)), offset)
        except (CorruptSnapshot, FileMissing):
            return None

    def noted_index(self, base_offset: Offset) -> Fingerprint | None:
        """What is noted of the transaction index of a segment; None: nothing. For any thread."""
        return (self._noted or {}).get(base_offset)

    def take_index(self, segments: Sequence[Segment], number: int, entries: Sequence[AbortedTransaction]) -> None:
        """Give a segment the entries that its batches ask for, and save them. Raises DiskError."""
        segments[number].transactions.replace(entries)
        self._save_index(segments, number)

    def build_index(self, segments: Sequence[Segment], number: int) -> None:
        """Make the index of a segment again, and save it where the segment is closed for writing. Raises DiskError."""
        self.take_index(segments, number, self.aborted_in(segments, number))

    def mend_indexes(self, segments: Sequence[Segment]) -> None:
        """Make the indexes again that a reader found to contradict the log. Raises DiskError."""
        for number, segment in enumerate(segments):
            if segment.transactions.must_build:
                self.build_index(segments, number)

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

    def forget_between(self, base_offset: Offset, end_offset: Offset) -> None:
        """Segments that began between these, both exclusive, were merged: remove their snapshots, but not the newest.

        Whatever a snapshot that stays does not say is in the records behind it.
        """
        for offset in [offset for offset in self._snapshots[:-1] if base_offset < offset < end_offset]:
            self._remove(offset)

    def expire(self, now_ms: int, max_silence_ms: int) -> None:
        """See `ProducerStates.expire`."""
        self.states.expire(now_ms, max_silence_ms)

    # --- details ---

    @property
    def _has_markers(self) -> bool:
        """Transactions have ended in this log."""
        return any(entry.coordinator_epoch != NO_COORDINATOR_EPOCH for entry in self.states.entries.values())

    def _adopt_indexes(self, segments: Sequence[Segment]) -> None:
        """Another software left them, or nobody did: make them all, and note them, once."""
        self._noted = {}
        for number in range(len(segments)):
            self.build_index(segments, number)
        write_note(self._disk, self._path, self._noted)

    def _distrust_indexes(self, segments: Sequence[Segment]) -> None:
        """Those that are not as they were noted. One that is written to is made again unless it was noted: readers
        compare only closed ones with the log."""
        for segment in segments:
            index = segment.transactions
            expected = (self._noted or {}).get(segment.base_offset)
            if index.must_build:
                index.must_build = True  # a scan has noted markers, and nothing adds what they have aborted
                continue
            if expected is None and not index.has_entries:
                continue
            if expected is None:
                index.must_build = segment is segments[-1]
                continue
            try:
                index.is_trusted = index.fingerprint == expected
            except CorruptTransactionIndex:
                index.is_trusted = False
            index.must_build = not index.is_trusted

    def _rebuild(
        self, segments: Sequence[Segment], end_offset: Offset, scanned: ScannedProducers | None = None
    ) -> None:
        """And build the transaction indexes that must be built: from the same replay where that reads their segment."""
        before = self.states.transactions.unstable
        start, states = self._newest(segments[0].base_offset, end_offset)
        if scanned is not None and scanned.begun_at == start:
            states = scanned.states
            for number, segment in enumerate(segments):
                if segment.base_offset in scanned.ended:
                    self._take_ended(segments, number, start, scanned.ended[segment.base_offset])
        else:
            for number, segment in enumerate(segments):
                is_last = number == len(segments) - 1
                if (end_offset if is_last else segments[number + 1].base_offset) > start:
                    self._take_ended(segments, number, start, replay(segment, start, states))
        states.transactions.keep_ended(before, end_offset)
        self.states = states
        self.mend_indexes(segments)

    def _take_ended(
        self, segments: Sequence[Segment], number: int, start: Offset, ended: Iterable[EndedTransaction]
    ) -> None:
        """ended: the transactions that a replay from `start` on has seen end in a segment."""
        segment = segments[number]
        if segment.transactions.must_build and start <= segment.base_offset:
            segment.transactions.replace(aborted(ended))
            self._save_index(segments, number)

    def _save_index(self, segments: Sequence[Segment], number: int) -> None:
        if number < len(segments) - 1:
            segments[number].transactions.flush()
            self.note_index(segments[number], segments)

    def _at(self, segments: Sequence[Segment], end_offset: Offset) -> tuple[Offset, ProducerStates]:
        """As `_newest`, but for any thread: nothing is removed."""
        for offset in reversed([o for o in list(self._snapshots) if segments[0].base_offset <= o <= end_offset]):
            path = self._file_path(offset)
            try:
                return offset, ProducerStates(decode_snapshot(path, self._disk.read_bytes(path)), offset)
            except (CorruptSnapshot, FileMissing):
                continue
        return 0, ProducerStates()

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

    def _take_over_unsynced(self, first: Offset) -> bool:
        """Snapshots that an earlier process wrote and perhaps did not sync: remove torn ones, sync the others.

        first: the recovery point. A roll writes a snapshot there after everything before it was synced. Of a log that
        asks for no sync, an older one may be torn where a newer one is whole. True if any was removed.
        """
        unsynced = [offset for offset in self._snapshots if offset >= first]
        for offset in unsynced:
            path = self._file_path(offset)
            try:
                decode_snapshot(path, self._disk.read_bytes(path))
            except CorruptSnapshot:
                self._remove(offset)
            else:
                self._unsynced.append(offset)
        self.sync()
        return any(offset not in self._snapshots for offset in unsynced)

    def _remove(self, offset: Offset) -> None:
        self._snapshots.remove(offset)
        self._unsynced = [unsynced for unsynced in self._unsynced if unsynced != offset]
        self._disk.unlink(self._file_path(offset))

    def _file_path(self, offset: Offset) -> str:
        return f"{self._path}/{snapshot_name(offset)}"
