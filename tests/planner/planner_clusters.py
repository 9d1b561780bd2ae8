"""Pictures of clusters for tests of the planner."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from quorumlog.ids import NodeId
from quorumlog.planner.cluster import Broker, Cluster, Directory, Partition

GIB = 1 << 30


def broker(node_id: NodeId, rack: str = "", *, is_live: bool = True, cordoned: bool = False, room: int = -1) -> Broker:
    directory = Directory(path=f"/{node_id}", usable_bytes=room, takes_new=not cordoned)
    return Broker(node_id=node_id, rack=rack, is_live=is_live, directories=(directory,))


def partition(index: int, replicas: Sequence[NodeId], size_bytes: int = GIB, topic: str = "t") -> Partition:
    return Partition(topic=topic, index=index, replicas=tuple(replicas), size_bytes=size_bytes)


def cluster(brokers: Sequence[Broker], partitions: Sequence[Partition]) -> Cluster:
    return Cluster.of(brokers, partitions)


@st.composite
def clusters(draw: st.DrawFn, *, dead: bool = True) -> Cluster:
    """2 to 7 brokers in up to 3 racks, some fenced, cordoned, or short of room; up to 24 partitions."""
    count = draw(st.integers(2, 7))
    racks = draw(st.integers(1, 3))
    brokers = [
        broker(
            node_id,
            f"r{draw(st.integers(1, racks))}" if racks > 1 else "",
            is_live=not dead or draw(st.integers(0, 9)) > 0,
            cordoned=dead and draw(st.integers(0, 9)) == 0,
            room=draw(st.sampled_from([-1, -1, 5, 500])) if dead else -1,
        )
        for node_id in range(1, count + 1)
    ]
    ids = st.permutations(range(1, count + 1))
    copies = draw(st.integers(1, min(3, count)))
    sizes = draw(st.lists(st.integers(0, 100), max_size=24))
    return Cluster.of(brokers, [partition(n, draw(ids)[:copies], size) for n, size in enumerate(sizes)])


def loads(found: Cluster) -> dict[NodeId, int]:
    """Bytes of each live broker, counted anew."""
    counted = dict.fromkeys(found.live, 0)
    for node_id, one in found.replicas():
        if node_id in counted:
            counted[node_id] += one.size_bytes
    return counted


def preferred_counts(found: Cluster) -> dict[NodeId, int]:
    return {node: sum(one.replicas[0] == node for one in found.partitions.values()) for node in found.live}
