"""Which segments a topic's policy lets go. Pure.

Kafka's rules (`UnifiedLog.deleteOldSegments`), for topics whose `cleanup.policy` holds `delete`:

1. Whole segments only, from the oldest on. The first one that stays keeps all that follow it.
2. Never a segment that ends after the high watermark.
3. By size (`retention.bytes`): the oldest goes while the rest still holds that many bytes.
4. Then by time (`retention.ms`): a segment whose largest timestamp is older goes. A record dated ahead keeps its
   segment, and all after it, until its time has passed.
5. The active segment goes like the others; the log then goes on with a new one. An empty active segment stays.

Beyond Kafka, which takes the time of the file: a segment without a timestamp is as old as the next one that has one. A
copy of a file is new, and its records are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from quorumlog.ids import Offset

UNLIMITED = -1
NO_TIMESTAMP = -1


class Policy(NamedTuple):
    """retention_ms, retention_bytes: of the topic; UNLIMITED for no limit."""

    retention_ms: int = UNLIMITED
    retention_bytes: int = UNLIMITED

    @property
    def keeps_all(self) -> bool:
        return self.retention_ms < 0 and self.retention_bytes < 0


class Aged(Protocol):
    """largest_timestamp: in ms; NO_TIMESTAMP where no batch has one. Only asked where `retention.ms` is limited."""

    @property
    def largest_timestamp(self) -> int: ...


def expired(
    segments: Sequence[Aged],
    sizes: Sequence[int],
    ends: Sequence[Offset],
    policy: Policy,
    *,
    high_watermark: Offset,
    now_ms: int,
) -> int:
    """How many segments go, from the oldest on. sizes: in bytes. ends: exclusive, of each segment.

    now_ms: wall clock.
    """
    may_go = _below(sizes, ends, high_watermark)
    going = 0
    excess = sum(sizes) - policy.retention_bytes
    if policy.retention_bytes >= 0:
        while going < may_go and excess >= sizes[going]:
            excess -= sizes[going]
            going += 1
    if policy.retention_ms >= 0:
        while going < may_go and _is_older(segments, going, may_go, now_ms - policy.retention_ms):
            going += 1
    return going


def _below(sizes: Sequence[int], ends: Sequence[Offset], high_watermark: Offset) -> int:
    """How many segments may go at all."""
    for number, end in enumerate(ends):
        is_last = number == len(ends) - 1
        if end > high_watermark or (is_last and sizes[number] == 0):
            return number
    return len(ends)


def _is_older(segments: Sequence[Aged], number: int, may_go: int, than_ms: int) -> bool:
    for segment in segments[number:may_go]:
        largest = segment.largest_timestamp
        if largest != NO_TIMESTAMP:
            return largest < than_ms
    return False
