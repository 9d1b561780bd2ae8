"""Times and limits of the quorum. Defaults: DESIGN 12; the rest as Kafka has them, scaled to its shorter timeouts."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.raft.chance import Chance


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    election_timeout_ms: int = 500  # an election waits this, plus rand(0..this)
    fetch_timeout_ms: int = 1_000  # a follower that fetched nothing for so long doubts its leader
    fetch_max_wait_ms: int = 500  # longest that a leader parks a fetch
    fetch_max_bytes: int = 1024 * 1024  # of records in one answer; one batch is sent even if it is larger
    request_timeout_ms: int = 1_000
    retry_backoff_ms: int = 50  # after a failed or refused fetch, and between EndQuorumEpoch attempts
    rejected_retry_min_ms: int = 50  # a round of votes that cannot be won is tried again after rand(min..max)
    rejected_retry_max_ms: int = 200
    rank_step_ms: int = 75  # rank k waits k steps plus jitter: after a leader's proven death, and at a first start
    rank_jitter_ms: int = 25
    election_backoff_max_ms: int = 1_000  # longest wait of a successor that the leader did not prefer
    max_parked_fetches: int = 1_000  # one more is answered at once, empty
    max_replicas_in_view: int = 1_000  # observers remembered for DescribeQuorum
    observer_session_ms: int = 300_000  # an observer that did not fetch for so long is forgotten
    max_batch_bytes: int = 8 * 1024 * 1024  # of one atomic append

    def __post_init__(self) -> None:
        assert 0 < self.fetch_max_wait_ms < self.fetch_timeout_ms, "a parked fetch must not look like a dead leader"
        assert 0 < self.rejected_retry_min_ms <= self.rejected_retry_max_ms
        assert self.election_timeout_ms > 0 and self.request_timeout_ms > 0 and self.retry_backoff_ms > 0

    @property
    def check_quorum_timeout_ms(self) -> int:
        """A leader without fetches from a majority for so long resigns: 1.5 fetch timeouts."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_interval_ms(self) -> int:
        """How often a leader tells voters that do not fetch that it leads."""
        return self.fetch_timeout_ms // 2

    def draw_election_timeout_ms(self, rng: Chance) -> int:
        return self.election_timeout_ms + rng.randrange(self.election_timeout_ms)

    def draw_rejected_retry_ms(self, rng: Chance) -> int:
        return rng.randint(self.rejected_retry_min_ms, self.rejected_retry_max_ms)

    def draw_rank_delay_ms(self, rank: int, rng: Chance) -> int:
        """rank: place among the voters, without a leader that is dead; 0 first."""
        assert rank >= 0
        return rank * self.rank_step_ms + rng.randint(0, self.rank_jitter_ms)

    def successor_delay_ms(self, position: int | None, candidates: int) -> int:
        """How long a voter waits before it stands for a leader that resigned (KRAFT 2.2).

        position: place in the leader's list of `candidates` successors, best first; None if it is not listed.
        """
        if position is None:
            return self.election_backoff_max_ms
        assert 0 <= position < candidates
        if position == 0:
            return 0
        shortest_ms = max(1, self.election_backoff_max_ms >> (candidates - 1))
        return min(self.election_backoff_max_ms, shortest_ms << (position - 1))
