"""How far a reader may see: a name for each bound, and the one function that turns it into an offset.

Where each offset is computed:

- the log end: the log itself, `Log.end_offset`;
- the high watermark: the partition's core, from what the in-sync replicas hold
  (quorumlog_storage/rules/commit_rule.py); a follower has it from its leader;
- the last stable offset: the partition's core, from the high watermark and the log's transactions
  (quorumlog_storage/producers/transactions.py). It lies where the first of them begins that is open, or whose end may
  not be replicated, and never above the high watermark.

`Log.read` takes the offset. So a log is read in the same way by a leader, by a follower, and by a coordinator that
reads its own partition without leading it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from quorumlog.ids import Offset


class Isolation(Enum):
    """What a reader asks for."""

    LOG_END = auto()  # everything that is written: replicas
    HIGH_WATERMARK = auto()  # what all in-sync replicas hold: consumers, isolation.level=read_uncommitted
    LAST_STABLE_OFFSET = auto()  # and no open transaction: consumers, isolation.level=read_committed


class ReadableOffsets(Protocol):
    """What one replica of a partition publishes to readers. Each is exclusive; they rise in this order."""

    @property
    def last_stable_offset(self) -> Offset: ...
    @property
    def high_watermark(self) -> Offset: ...
    @property
    def end_offset(self) -> Offset: ...


def upper_bound(isolation: Isolation, offsets: ReadableOffsets) -> Offset:
    """Exclusive: the reader sees no batch with a record at or after it."""
    if isolation is Isolation.LOG_END:
        return offsets.end_offset
    if isolation is Isolation.HIGH_WATERMARK:
        return offsets.high_watermark
    return offsets.last_stable_offset
