"""First and end offsets of a topic's partitions, also where some leaders do not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quorumlog_cli.connecting.lost_quorum import is_silence, lost_quorum

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.ids import TopicPartition
    from quorumlog.messages.cluster import TopicMetadata

FIRST_MS = 3_000  # before it is asked why a leader does not answer
ASK_MS = 2_000  # of one leader, where the quorum is lost


class Ranges(NamedTuple):
    """found: (first, end) by partition; without partitions that have no leader, and those whose leader is silent."""

    found: dict[int, tuple[int, int]]
    problems: list[str]


def ranges_of(admin: Admin, topic: TopicMetadata) -> Ranges:
    """Where the quorum has a leader, a silent one is replaced, and waited for. Raises what the client does then."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in topic.partitions:
        if partition.leader_id >= 0:
            by_leader.setdefault(partition.leader_id, []).append((topic.name, partition.index))
    keys = [key for led in by_leader.values() for key in led]
    try:
        return Ranges(_ask(admin, keys, FIRST_MS), [])
    except Exception as error:
        if not is_silence(error):
            raise
    lost = lost_quorum(admin)
    if not lost:
        return Ranges(_ask(admin, keys, None), [])
    found: dict[int, tuple[int, int]] = {}
    problems = []
    for leader, led in by_leader.items():
        try:
            found |= _ask(admin, led, ASK_MS)
        except Exception as error:
            if not is_silence(error):
                raise
            names = ", ".join(f"{name}-{index}" for name, index in led)
            problems.append(f"broker {leader}, which leads {names}, does not answer")
    return Ranges(found, [*problems, lost])


def _ask(admin: Admin, keys: list[TopicPartition], timeout_ms: int | None) -> dict[int, tuple[int, int]]:
    """timeout_ms: None: the client's default."""
    if not keys:
        return {}
    ranges = admin.list_offset_ranges(keys, timeout_ms)
    return {key[1]: (first.offset, end.offset) for key, (first, end) in ranges.items()}
