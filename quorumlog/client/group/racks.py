"""Which members of a group are near which partitions: in the rack of one of their replicas (KIP-881). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from quorumlog.ids import NodeId
from quorumlog.messages.cluster import MetadataResponse

Racks = Mapping[str, Sequence[frozenset[str]]]
"""By topic, for each partition: the racks of its replicas."""

NOWHERE: Racks = MappingProxyType({})

IsNear = Callable[[str, tuple[str, int]], bool]
"""Whether the member with this id is in a rack of the partition."""


def racks_of(response: MetadataResponse, of_brokers: dict[NodeId, str]) -> Racks:
    """of_brokers: as they were known before; brought up to date. A broker that is down keeps its rack: else each of its
    restarts would begin two rebalances. Of a broker without a rack nothing is near."""
    of_brokers.update((broker.node_id, broker.rack or "") for broker in response.brokers)
    return {
        topic.name: tuple(
            frozenset(of_brokers[one] for one in partition.replicas if of_brokers.get(one))
            for partition in sorted(topic.partitions, key=lambda one: one.index)
        )
        for topic in response.topics
    }


def nearness(members: Iterable[tuple[str, str | None]], racks: Racks) -> IsNear | None:
    """members: their ids and racks. None where racks decide nothing: nobody is near anything, or each partition has a
    replica in each rack. Then the assignment is the one without racks."""
    rack_of = {member: rack for member, rack in members if rack}
    partitions = [one for topic in racks.values() for one in topic]
    everywhere = frozenset().union(*partitions)
    if everywhere.isdisjoint(rack_of.values()) or all(one == everywhere for one in partitions):
        return None

    def is_near(member: str, partition: tuple[str, int]) -> bool:
        topic, index = partition
        found = racks.get(topic, ())
        return index < len(found) and rack_of.get(member) in found[index]

    return is_near
