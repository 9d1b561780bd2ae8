"""What a broker says about the quorum, for a caller that has no clock of the cluster's. Pure."""

from __future__ import annotations

from dataclasses import replace

from quorumlog.messages.quorum import DescribeQuorumResponse, QuorumReplica


def with_durations(found: DescribeQuorumResponse) -> DescribeQuorumResponse:
    """Kafka's protocol has points in time only (KIP-836). The leader's own is when it was asked: so no clock of this
    machine's counts."""
    asked_at_ms = max(
        (replica.last_fetch_wall_ms for replica in found.voters if replica.replica_id == found.leader_id), default=-1
    )
    if asked_at_ms < 0:
        return found
    return replace(
        found,
        voters=tuple(_with_durations(replica, asked_at_ms) for replica in found.voters),
        observers=tuple(_with_durations(replica, asked_at_ms) for replica in found.observers),
    )


def _with_durations(replica: QuorumReplica, asked_at_ms: int) -> QuorumReplica:
    def since(known_ms: int, wall_ms: int) -> int:
        return known_ms if known_ms >= 0 or wall_ms < 0 else max(0, asked_at_ms - wall_ms)

    return replace(
        replica,
        since_fetch_ms=since(replica.since_fetch_ms, replica.last_fetch_wall_ms),
        since_caught_up_ms=since(replica.since_caught_up_ms, replica.last_caught_up_wall_ms),
    )
