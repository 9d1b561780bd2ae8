"""Times and limits of the quorum. The defaults are Kafka's, scaled to our time-outs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorumlog.settings.key import number, setting, size

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    fetch_timeout_ms: int = setting(
        number("controller.quorum.fetch.timeout.ms", 1_000, 10, "Silence of the quorum's leader before an election.")
    )
    election_timeout_ms: int = setting(  # a voter without a leader waits this plus rand(0..this) before an election
        number(
            "controller.quorum.election.timeout.ms", 500, 10, "How long a candidate waits, plus up to as much again."
        )
    )
    fetch_snapshot_max_bytes: int = setting(
        size("controller.quorum.fetch.snapshot.max.bytes", 1 << 20, 1, "Most bytes of a snapshot in one answer.")
    )
    fetch_max_wait_ms: int = 500  # the longest time for which a leader parks a fetch
    fetch_max_bytes: int = 1024 * 1024  # of records in one response; a single batch may be larger
    high_watermark_hold_ms: int = 10  # the longest time for which a high watermark waits for records that carry it
    observer_pause_ms: int = 1  # between two rounds of answers to observers, for each of them: an answer is a message
    observer_round_max_ms: int = 250  # the longest time between two rounds
    request_timeout_ms: int = 1_000
    retry_backoff_ms: int = 50  # after a failed or refused fetch, and between EndQuorumEpoch attempts
    rejected_retry_min_ms: int = 50  # a vote round that cannot be won is repeated after rand(min..max)
    rejected_retry_max_ms: int = 200
    rank_step_ms: int = 75  # after a leader's proven death and at the first start, rank k waits k steps plus jitter
    rank_jitter_ms: int = 25
    hand_over_timeout_ms: int = 500  # how long a leader that hands over waits for a successor to catch up
    successor_head_start_ms: int = 50  # the others are told of the resignation so much later than a ready successor
    election_backoff_max_ms: int = 1_000  # the longest wait of a successor after a resignation
    max_parked_fetches: int = 1_000  # a fetch beyond this is answered at once, without records
    max_replicas_in_view: int = 1_000  # observers that DescribeQuorum can show
    observer_session_ms: int = 300_000  # after so long without a fetch an observer is forgotten
    voter_change_timeout_ms: int = 5_000  # for the commit of a removed or updated voter
    voter_change_max_ms: int = 100_000  # the longest time that a request to add a voter may wait for its catching up
    voter_request_retry_ms: int = 1_000  # until a follower asks its leader again about itself as a voter
    auto_join_timeout_ms: int = 60_000  # for which a node that joins by itself lets the leader wait for it
    max_batch_bytes: int = 8 * 1024 * 1024  # of one atomic append

    def __post_init__(self) -> None:
        assert 0 < self.fetch_max_wait_ms < self.fetch_timeout_ms, (
            "a parked fetch must be answered before the fetch timeout"
        )
        assert 0 < self.rejected_retry_min_ms <= self.rejected_retry_max_ms
        assert self.observer_round_max_ms < self.fetch_timeout_ms, "a round may not look like a dead leader"
        assert self.election_timeout_ms > 0 and self.request_timeout_ms > 0 and self.retry_backoff_ms > 0

    def observer_round_ms(self, observers: int) -> int:
        """Between two rounds of answers to so many observers."""
        return min(self.observer_round_max_ms, observers * self.observer_pause_ms)

    @property
    def check_quorum_timeout_ms(self) -> int:
        """A leader that gets no fetches from a majority for so long resigns: 1.5 fetch timeouts."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_interval_ms(self) -> int:
        """How often a leader sends BeginQuorumEpoch to the voters that do not fetch."""
        return self.fetch_timeout_ms // 2

    def draw_election_timeout_ms(self, rng: Random) -> int:
        return self.election_timeout_ms + rng.randrange(self.election_timeout_ms)

    def draw_rejected_retry_ms(self, rng: Random) -> int:
        return rng.randint(self.rejected_retry_min_ms, self.rejected_retry_max_ms)

    def draw_rank_delay_ms(self, rank: int, rng: Random) -> int:
        """rank: place among the voters, not counting a dead leader; the first is 0."""
        assert rank >= 0
        return rank * self.rank_step_ms + rng.randint(0, self.rank_jitter_ms)

    def successor_delay_ms(self, position: int | None, candidates: int) -> int:
        """How long a voter waits before its election after the leader resigned (KIP-595).

        position: place in the leader's list of preferred successors; None if the voter is not in the list.
        candidates: length of that list.
        """
        if position is None:
            return self.election_backoff_max_ms
        assert 0 <= position < candidates
        if position == 0:
            return 0
        shortest_ms = max(1, self.election_backoff_max_ms >> (candidates - 1))
        return min(self.election_backoff_max_ms, shortest_ms << (position - 1))
