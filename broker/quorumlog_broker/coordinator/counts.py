"""What the coordinators of one kind on a node have done since its start, for metrics: they come and go, it stays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CoordinatorCounts:
    """offset_commits: of partitions, also in transactions. rebalances: that began a generation or an epoch of a group
    with members. committed, aborted: decisions about open transactions."""

    offset_commits: int = 0
    rebalances: int = 0
    committed: int = 0
    aborted: int = 0
