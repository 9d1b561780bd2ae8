"""In which leader epoch each offset of one log was written. Truncation and fetching are decided by this.

Entries (epoch, start offset), both columns strictly increasing; an epoch ends where the next one starts, the last one
at the log's end. Sources: KIP-101, KIP-279; format: Kafka's `LeaderEpochCheckpointFile`.

Pure. The entries are one immutable tuple that every change replaces, so that any thread may read while the
log's writer changes. The log writes the file (quorumlog_storage/log/log.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint, parse_checkpoint, parse_number, render_checkpoint

CHECKPOINT_NAME = "leader-epoch-checkpoint"


class EpochStart(NamedTuple):
    """The first offset that was written in a leader epoch."""

    epoch: Epoch
    start_offset: Offset


class EpochEnd(NamedTuple):
    """An epoch and its exclusive end offset."""

    epoch: Epoch
    end_offset: Offset


class LeaderEpochCache:
    """The epochs of one log. Changed by the log's writer only."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self.entries: tuple[EpochStart, ...] = ()
        for entry in entries:
            self.assign(*entry)

    @property
    def last_epoch(self) -> Epoch:
        """NO_EPOCH if nothing was written."""
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def assign(self, epoch: Epoch, start_offset: Offset) -> bool:
        """Note that `epoch` writes from `start_offset` on. True if that changed anything.

        An epoch keeps its smallest start. Entries at the tail with a later epoch, or a start at or after this one, are
        removed.
        """
        assert epoch >= 0 and start_offset >= 0, (epoch, start_offset)
        before = self.entries
        kept = len(before)
        while kept and (before[kept - 1].epoch > epoch or before[kept - 1].start_offset >= start_offset):
            kept -= 1
        known = kept > 0 and before[kept - 1].epoch == epoch
        after = before[:kept] if known else (*before[:kept], EpochStart(epoch, start_offset))
        self.entries = after
        return after != before

    def end_offset_for(self, epoch: Epoch, log_end: Offset) -> EpochEnd | None:
        """Where `epoch` ends in this log: the largest epoch <= the one asked for, and its end.

        None for NO_EPOCH, an empty cache, or an epoch after the last. Below the first: (epoch, start of the first).
        """
        entries = self.entries
        if epoch < 0 or not entries or epoch > entries[-1].epoch:
            return None
        after = bisect_right(entries, epoch, key=attrgetter("epoch"))
        end = entries[after].start_offset if after < len(entries) else log_end
        return EpochEnd(entries[after - 1].epoch if after else epoch, end)

    def epoch_for(self, offset: Offset) -> Epoch | None:
        """The epoch that wrote `offset`; None before the first start. An offset past the end gets the last epoch."""
        entries = self.entries
        after = bisect_right(entries, offset, key=attrgetter("start_offset"))
        return entries[after - 1].epoch if after else None

    def truncate_from_end(self, end_offset: Offset) -> bool:
        """Forget epochs that start at or after `end_offset`; a negative one does nothing. True if any was forgotten."""
        if end_offset < 0 or not self.entries or self.entries[-1].start_offset < end_offset:
            return False
        self.entries = tuple(entry for entry in self.entries if entry.start_offset < end_offset)
        return True

    def truncate_from_start(self, start_offset: Offset) -> bool:
        """Forget epochs that end at or before `start_offset`; the one that spans it starts there. True if changed."""
        entries = self.entries
        after = bisect_right(entries, start_offset, key=attrgetter("start_offset"))
        if after == 0 or entries[after - 1].start_offset == start_offset == entries[0].start_offset:
            return False
        self.entries = (EpochStart(entries[after - 1].epoch, start_offset), *entries[after:])
        return True

    def is_told_by(self, saved: tuple[EpochStart, ...], end_offset: Offset) -> bool:
        """Whether a start makes these epochs of a checkpoint with `saved`. end_offset: of the log.

        An epoch that starts at the log's end has no records. A start forgets it, so nothing depends on its line.
        """
        return saved == self.entries or _with_records(saved, end_offset) == _with_records(self.entries, end_offset)

    def render(self) -> bytes:
        """The content of the checkpoint file."""
        return render_checkpoint(f"{entry.epoch} {entry.start_offset}" for entry in self.entries)

    @classmethod
    def parse(cls, path: str, content: bytes) -> LeaderEpochCache:
        """From the content of a checkpoint file. Raises CorruptCheckpoint, also where a column does not increase."""
        entries, last = list[EpochStart](), EpochStart(-1, -1)
        for line, words in enumerate(parse_checkpoint(path, content), start=3):
            if len(words) != 2:
                raise CorruptCheckpoint(path, line, f"{len(words)} words, not an epoch and an offset")
            entry = EpochStart(parse_number(path, line, words[0]), parse_number(path, line, words[1]))
            if entry.epoch <= last.epoch or entry.start_offset <= last.start_offset:
                raise CorruptCheckpoint(path, line, f"{tuple(entry)} after {tuple(last)}: both columns must increase")
            entries.append(entry)
            last = entry
        cache = cls()
        cache.entries = tuple(entries)
        return cache


def _with_records(entries: tuple[EpochStart, ...], end_offset: Offset) -> tuple[EpochStart, ...]:
    return tuple(entry for entry in entries if entry.start_offset != end_offset)
