"""`leader-epoch-checkpoint` against the epochs of the batches (KIP-101).

An entry says where an epoch starts: at the first offset that was written in it. Exactly that offset is wanted where the
batches leave no gap; with a gap before an epoch's first batch, the epoch may have started anywhere in it. Two entries
have no batch of their own: that of a leader that has written nothing yet, at the log's end, and those in gaps.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Epoch, Offset
from quorumlog_storage.audit.batches import FoundBatch
from quorumlog_storage.audit.finding import Findings, Weight
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint
from quorumlog_storage.rules.epochs import LeaderEpochCache


class Start(NamedTuple):
    """An epoch of the batches: it started in [lowest, first]. first: base offset of its first batch."""

    epoch: Epoch
    lowest: Offset
    first: Offset


class EpochsCheck:
    """Fed with all batches of a log in order. first_base: of its first segment."""

    def __init__(self, first_base: Offset) -> None:
        self._starts: list[Start] = []
        self._first_base = self._end = first_base

    def batch(self, found: FoundBatch) -> None:
        header = found.header
        epoch = header.leader_epoch
        if epoch >= 0 and (not self._starts or epoch > self._starts[-1].epoch):
            self._starts.append(Start(epoch, self._end, header.base_offset))
        self._end = header.next_offset

    def compare(
        self, path: str, content: bytes | None, log_start: Offset, log_end: Offset, findings: Findings,
        lax_from: Offset | None,
    ) -> None:  # fmt: skip
        """content: None where there is no file. lax_from: None after a clean end.

        After another one, what concerns offsets from `lax_from` on is no fault, and neither is a file that is older
        than the log's start: the next start puts both right.
        """
        if content is None:
            if self._starts:
                weight = self._weight(self._starts[0].first, lax_from)
                findings.add("epochs-missing", path, expected="the epochs of the log", found="no file", weight=weight)
            return
        try:
            told = dict(LeaderEpochCache.parse(path, content).entries)
        except CorruptCheckpoint as error:
            findings.add("epochs-content", path, expected="epochs and start offsets", found=error.reason)
            return
        ends = [start.first for start in self._starts[1:]] + [log_end] * bool(self._starts)
        for start, end in zip(self._starts, ends, strict=True):
            found = told.pop(start.epoch, None)
            fits = found is not None and start.lowest <= found <= max(start.first, log_start)
            if end > log_start and not fits:
                wanted, is_there = f"epoch {start.epoch} from {start.first} on", "none" if found is None else str(found)
                self._fault(findings, path, start.first if found is None else found, wanted, is_there, lax_from)
        for epoch, offset in told.items():
            if offset != log_end and not self._is_in_gap(epoch, offset):
                wanted, is_there = "epochs that batches have", f"epoch {epoch} from {offset} on"
                self._fault(findings, path, offset, wanted, is_there, lax_from)

    def _fault(
        self, findings: Findings, path: str, offset: Offset, expected: str, found: str, lax_from: Offset | None
    ) -> None:
        weight = self._weight(offset, lax_from)
        findings.add("epochs-entry", path, offset=offset, expected=expected, found=found, weight=weight)

    def _weight(self, offset: Offset, lax_from: Offset | None) -> Weight:
        is_excused = lax_from is not None and (offset >= lax_from or offset < self._first_base)
        return Weight.NOTE if is_excused else Weight.FAULT

    def _is_in_gap(self, epoch: Epoch, offset: Offset) -> bool:
        """No batch has the epoch, and it lies between two that leave room for it."""
        after = next((start for start in self._starts if start.epoch > epoch), None)
        return after is not None and after.lowest <= offset < after.first
