"""In which order nodes are restarted, and what each restart takes from clients while the node is away."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from quorumlog.ids import NodeId
from quorumlog.rolling.picture import Partition, Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the restart of a node takes from a partition. left: replicas in sync while it is away."""

    node_id: NodeId
    partition: Partition
    left: int

    @property
    def is_offline(self) -> bool:
        return self.left == 0

    def __str__(self) -> str:
        one = self.partition
        if self.is_offline:
            return f"{one.name}: its only replica is on node {self.node_id}, so it is offline while that one is away"
        replicas = ", ".join(map(str, one.replicas))
        verb = "is" if self.left == 1 else "are"
        return (
            f"{one.name}: replicas {replicas}, min.insync.replicas {one.min_isr}; without node {self.node_id} "
            f"{self.left} {verb} left, so acks=all is refused"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """nodes: in the order of their restarts. costs: of partitions that cannot keep their minimum, by node.

    majority_lost: nodes without which the quorum has no majority, so that no metadata can change meanwhile.
    """

    nodes: tuple[NodeId, ...]
    costs: tuple[Cost, ...] = ()
    majority_lost: tuple[NodeId, ...] = ()

    @property
    def is_harmless(self) -> bool:
        return not self.costs and not self.majority_lost


def make_plan(picture: Picture, wanted: Collection[NodeId]) -> Plan:
    """wanted: nodes of the picture. A partition that is short now is counted as if it were whole."""
    unknown = [one for one in wanted if one not in picture.nodes]
    assert not unknown, f"no such nodes: {unknown}"
    order = in_order(picture, wanted)
    return Plan(
        nodes=tuple(order),
        costs=tuple(cost for node_id in order for cost in costs_of(picture, node_id)),
        majority_lost=tuple(one for one in order if loses_majority(picture, one)),
    )


def in_order(picture: Picture, wanted: Iterable[NodeId]) -> list[NodeId]:
    """Controllers only before brokers, the active controller last of all: so it moves once. Of brokers first who leads
    least, because what it leads goes to others for that time."""

    def rank(node_id: NodeId) -> tuple[bool, bool, int, NodeId]:
        node = picture.nodes[node_id]
        return node_id == picture.leader, node.is_broker, picture.leaderships(node_id), node_id

    return sorted(wanted, key=rank)


def costs_of(picture: Picture, node_id: NodeId) -> list[Cost]:
    found = []
    for one in picture.partitions:
        if node_id in one.replicas:
            left = len(one.replicas) - 1
            if left < max(1, one.min_isr):
                found.append(Cost(node_id=node_id, partition=one, left=left))
    return found


def loses_majority(picture: Picture, node_id: NodeId) -> bool:
    voters = picture.voters
    return node_id in voters and len(voters) - 1 < len(voters) // 2 + 1
