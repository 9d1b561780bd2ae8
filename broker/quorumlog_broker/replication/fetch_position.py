"""A follower's position in one partition of one leader, and when it may fetch again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import Epoch, Offset
from quorumlog_broker.partition.key import PartitionKey

FIRST_BACKOFF_MS = 10


@dataclass(slots=True)
class FetchPosition:
    """A new leader epoch gets a new object, so that the answer to an older fetch moves nothing.

    offset: the log's end as far as it may be acknowledged; the next fetch acknowledges everything below it.
    leader_high_watermark: as the last answer told it, exclusive; -1: there was none.
    """

    key: PartitionKey
    leader_epoch: Epoch
    offset: Offset
    last_epoch: Epoch  # of the record before `offset`; -1 if there is none
    log_start: Offset
    busy: bool = False  # the log is being appended to, or truncated, because of the last answer
    not_before_ms: int = 0
    backoff_ms: int = 0
    leader_high_watermark: Offset = -1

    @property
    def lag(self) -> int:
        """Offsets that are committed and not here yet (Kafka's FetcherLagMetrics)."""
        return max(0, self.leader_high_watermark - self.offset)

    def is_ready(self, now_ms: int) -> bool:
        return not self.busy and self.not_before_ms <= now_ms

    def back_off(self, now_ms: int, longest_ms: int) -> None:
        """Do not fetch for a while, longer each time until `progressed`."""
        self.backoff_ms = min(longest_ms, max(FIRST_BACKOFF_MS, self.backoff_ms * 2))
        self.not_before_ms = now_ms + self.backoff_ms

    def progressed(self) -> None:
        self.backoff_ms = 0
