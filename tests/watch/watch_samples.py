"""Samples of a cluster that nobody runs."""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.watch.sample import (
    Broker,
    BrokerState,
    Group,
    GroupOffset,
    Part,
    Partition,
    Quorum,
    QuorumMember,
    Sample,
    Topic,
)

BEGAN_MS = 1_700_000_000_000


def topic(name: str, *ends: int, size: int = 0, topic_id: bytes = b"", isr: tuple[int, ...] = (1, 2, 3)) -> Topic:
    parts = tuple(
        Partition(
            index=index, leader=1, replicas=(1, 2, 3), isr=isr, first=0, end=end, size_bytes=size if index == 0 else 0
        )
        for index, end in enumerate(ends)
    )
    return Topic(name=name, topic_id=topic_id or name.encode(), partitions=parts)


def group(name: str, *offsets: GroupOffset, state: str = "Stable") -> Group:
    return Group(group_id=name, state=state, group_type="classic", offsets=offsets)


def sample(
    at_ms: int,
    *topics: Topic,
    groups: tuple[Group, ...] = (),
    epoch: int = 1,
    leader: int = 1,
    states: Mapping[int, BrokerState] | None = None,
    missing: Mapping[Part, str] | None = None,
) -> Sample:
    given = states if states is not None else dict.fromkeys((1, 2, 3), BrokerState.SERVING)
    return Sample(
        at_ms=at_ms,
        wall_ms=BEGAN_MS + at_ms,
        cluster_id="c",
        brokers=tuple(Broker(node_id=one, host=f"b{one}", port=9092, state=state) for one, state in given.items()),
        quorum=Quorum(leader_id=leader, epoch=epoch, high_watermark=9, voters=(QuorumMember(node_id=1, end=10),)),
        topics={one.name: one for one in topics},
        groups={one.group_id: one for one in groups},
        missing=missing or {},
    )
