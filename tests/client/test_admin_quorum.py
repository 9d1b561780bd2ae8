"""The admin client and the quorum: an answer of Kafka's protocol has points in time, and no durations."""

from __future__ import annotations

from quorumlog.client.administration.quorum import with_durations
from quorumlog.messages.quorum import DescribeQuorumResponse, QuorumReplica

NOW_MS = 1_700_000_000_000


def replica(node_id: int, fetched_ms: int, caught_up_ms: int) -> QuorumReplica:
    return QuorumReplica(replica_id=node_id, last_fetch_wall_ms=fetched_ms, last_caught_up_wall_ms=caught_up_ms)


def since(found: DescribeQuorumResponse) -> list[tuple[int, int]]:
    return [(one.since_fetch_ms, one.since_caught_up_ms) for one in (*found.voters, *found.observers)]


def test_points_in_time_become_durations_by_the_leaders_clock() -> None:
    voters = (replica(1, NOW_MS, NOW_MS), replica(2, NOW_MS - 30, NOW_MS - 70), replica(3, -1, -1))
    found = DescribeQuorumResponse(leader_id=1, voters=voters, observers=(replica(4, NOW_MS + 5, NOW_MS - 9),))
    assert since(with_durations(found)) == [(0, 0), (30, 70), (-1, -1), (0, 9)]


def test_durations_that_were_told_stay() -> None:
    leader = QuorumReplica(replica_id=1, since_fetch_ms=0, since_caught_up_ms=0, last_fetch_wall_ms=NOW_MS)
    other = QuorumReplica(replica_id=2, since_fetch_ms=7, since_caught_up_ms=8, last_fetch_wall_ms=NOW_MS - 900)
    assert since(with_durations(DescribeQuorumResponse(leader_id=1, voters=(leader, other)))) == [(0, 0), (7, 8)]


def test_without_a_leader_nothing_is_said() -> None:
    found = DescribeQuorumResponse(leader_id=-1, voters=(replica(1, NOW_MS, NOW_MS),))
    assert with_durations(found) == found
