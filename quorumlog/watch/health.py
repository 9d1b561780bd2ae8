"""What of a sample is worth a mark: the same in `top` and in the console, by the thresholds of `check`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog.explaining.thresholds import Thresholds
from quorumlog.watch.sample import Directory, Quorum, QuorumMember, Topic

LIMITS = Thresholds()


def is_nearly_full(directory: Directory) -> bool:
    used = directory.used_share
    return used is not None and used > 1 - LIMITS.free_percent / 100


def is_silent(quorum: Quorum, member: QuorumMember) -> bool:
    """It has not fetched for a while, as far as there is a leader that would know."""
    if member.node_id == quorum.leader_id or quorum.leader_id < 0:
        return False
    return member.end < 0 or member.since_fetch_ms > LIMITS.voter_silent_ms


def led_under_replicated(topics: Iterable[Topic]) -> int:
    """Partitions that lack a replica in sync and have a leader. Those without one are not among them, however many
    replicas they have."""
    return sum(one.is_under_replicated and not one.is_offline for topic in topics for one in topic.partitions)
