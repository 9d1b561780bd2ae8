"""The brokers that lead the partitions of an internal topic: whoever asks all coordinators asks each of these."""

from __future__ import annotations

from quorumlog.ids import NodeId
from quorumlog_quorum.metadata.image import Image


class NoLeader(Exception):
    """A partition has none that lives. The message names it."""


def leaders_of(image: Image, topic: str) -> list[NodeId]:
    """Each once, by id; none where the topic was never made. Raises NoLeader."""
    found = image.topic(topic)
    leaders: set[NodeId] = set()
    for index, partition in () if found is None else found.sorted_partitions():
        leader = image.brokers.get(partition.leader)
        if leader is None or leader.fenced:
            raise NoLeader(f"{topic}-{index} has no leader now")
        leaders.add(leader.broker_id)
    return sorted(leaders)
