"""From where on something is told: by `check` and `explain`, and by the rules of `quorumlog generate alerts`."""

from __future__ import annotations

from dataclasses import dataclass

HOT_SHARE = 0.5
HOT_RECORDS = 100.0  # a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """All are exclusive: what is as large as its threshold is not told.

    lag: records of a group. recent_ms: how far back events count. starting_ms: for how long a broker may be fenced
    after it has registered, and a follower may catch up after it serves. fenced_ms: for how long one may be away that
    was shut down in order; under_replicated_ms likewise for its replicas. follower_ms: for how long a replica may be
    out of the ISR. voter_silent_ms: since a voter's last fetch. epochs: of the quorum in epochs_ms. rebalances: of a
    group in recent_ms. stuck_ms: for how long a group that is behind may commit nothing. hot_share: of a topic's
    records, at hot_records a second or more.
    hot_bytes: that a partition must have got between the looks to count as hot: records without a key go to one
    partition until batch.size (16 KiB) is full, so only many times of that show who prefers it.

    Of alerts only, which see no causes and so wait: no_controller_ms, under_min_isr_ms, group_lag_ms: for how long it
    may be so. metadata_lag_ms: of what a node has applied. failed_logins: a second, in the whole cluster.
    """

    free_percent: float = 15.0
    lag: int = 10_000
    rebalance_ms: int = 15_000
    rebalances: int = 5
    stuck_ms: int = 9_000
    transaction_ms: int = 300_000
    hanging_ms: int = 10_000
    certificate_days: int = 14
    stall_ms: int = 1_000
    voter_silent_ms: int = 5_000
    voter_lag: int = 1_000
    epochs: int = 3
    epochs_ms: int = 300_000
    fenced_ms: int = 120_000
    under_replicated_ms: int = 600_000
    follower_ms: int = 10_000
    hot_share: float = HOT_SHARE
    hot_records: float = HOT_RECORDS
    hot_bytes: int = 1 << 20
    recent_ms: int = 60_000
    unclean_ms: int = 3_600_000
    starting_ms: int = 60_000
    no_controller_ms: int = 30_000
    under_min_isr_ms: int = 60_000
    group_lag_ms: int = 300_000
    metadata_lag_ms: int = 10_000
    failed_logins: float = 10.0
