"""How far one follower has come, according to its fetches of the current leader epoch."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import BrokerEpoch, Offset

UNKNOWN: Offset = -1  # no fetch seen in this leader epoch
NEVER_MS = -(10**15)  # before any time that a clock may show


@dataclass(slots=True)
class FollowerProgress:
    """All times are the leader's `now_ms`."""

    end_offset: Offset = UNKNOWN  # the offset of its last fetch; it has acknowledged everything below
    broker_epoch: BrokerEpoch = -1  # of that fetch
    last_fetch_ms: int = NEVER_MS
    leader_end_at_last_fetch: Offset = UNKNOWN
    last_caught_up_ms: int = NEVER_MS
    log_start: Offset = UNKNOWN  # start of its own log, as of its last fetch

    def fetched(self, fetch_offset: Offset, broker_epoch: BrokerEpoch, leader_end: Offset, now_ms: int) -> None:
        """A fetch from the leader's end is caught up now; one from the end as of its last fetch was caught up then.

        The second rule keeps a follower of a growing log in the ISR, which may never reach the end.
        """
        if fetch_offset >= leader_end:
            self.last_caught_up_ms = now_ms
        elif fetch_offset >= self.leader_end_at_last_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset, self.broker_epoch = fetch_offset, broker_epoch
        self.last_fetch_ms, self.leader_end_at_last_fetch = now_ms, leader_end

    def fetched_unnamed(self, at_ms: int) -> None:
        """It fetched then without naming the partition, so from the same offset, which was the leader's end."""
        self.last_fetch_ms = max(self.last_fetch_ms, at_ms)
        self.last_caught_up_ms = max(self.last_caught_up_ms, at_ms)

    def is_caught_up(self, leader_end: Offset, now_ms: int, lag_time_max_ms: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.last_caught_up_ms <= lag_time_max_ms
