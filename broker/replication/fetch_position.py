"""Where a follower stands with one partition of one leader, and when it may ask again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from broker.replicas.reconciler import PartitionKey
from quorumlog.ids import Epoch, Offset

FIRST_BACKOFF_MS = 10


@dataclass(slots=True)
class FetchPosition:
    """One per leadership: a new leader epoch gets a new object, so that an answer to an old one finds nobody.

    offset: where the log ends as far as it may be told; all below is acknowledged by the next fetch.
    """

    key: PartitionKey
    leader_epoch: Epoch
    offset: Offset
    last_epoch: Epoch  # of the record before `offset`; -1 where there is none
    log_start: Offset
    busy: bool = False  # its last answer is being written or cut
    not_before_ms: int = 0
    backoff_ms: int = 0

    def is_ready(self, now_ms: int) -> bool:
        return not self.busy and self.not_before_ms <= now_ms

    def back_off(self, now_ms: int, longest_ms: int) -> None:
        """Wait, longer each time, until `progressed`."""
        self.backoff_ms = min(longest_ms, max(FIRST_BACKOFF_MS, self.backoff_ms * 2))
        self.not_before_ms = now_ms + self.backoff_ms

    def progressed(self) -> None:
        self.backoff_ms = 0
