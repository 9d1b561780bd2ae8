"""A cluster for tests of rolls: what is so, an image of it for each offset of its metadata, and looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from quorumlog.ids import NodeId, Offset
from quorumlog.rolling.picture import Node, Partition, Picture, Voter
from quorumlog.rolling.turn import Claim


def node(node_id: NodeId, **more: object) -> Node:
    """A broker and voter, unless told otherwise."""
    values: dict[str, object] = {"host": f"h{node_id}", "port": 9092, "epoch": node_id, "voter": Voter()}
    return Node(node_id=node_id, **{**values, **more})  # type: ignore[arg-type]


def partition(
    index: int, replicas: Sequence[NodeId], isr: Sequence[NodeId] | None = None, min_isr: int = 2
) -> Partition:
    in_sync = replicas if isr is None else isr
    leader = in_sync[0] if in_sync else -1
    return Partition(
        topic="t", index=index, leader=leader, replicas=tuple(replicas), isr=tuple(in_sync), min_isr=min_isr
    )


def picture(
    nodes: Sequence[Node], partitions: Sequence[Partition] = (), leader: NodeId = 1, at: Offset = 100
) -> Picture:
    return Picture(
        nodes={one.node_id: one for one in nodes},
        partitions=tuple(partitions),
        leader=leader,
        nodes_offset=at,
        topics_offset=at,
    )


THREE = (node(1), node(2), node(3))
WHOLE = picture(THREE, [partition(0, (1, 2, 3)), partition(1, (2, 3, 1)), partition(2, (3, 1, 2))])


@dataclass
class World:
    """Nodes and partitions as they are. Each change is an offset of the metadata; `images` keeps all.

    tells_epochs: as our protocol does; Kafka's does not, and tells no offsets either.
    """

    now: Picture = WHOLE
    tells_epochs: bool = True
    images: list[Picture] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.images.append(self.now)

    def change(self, **more: object) -> None:
        offset = self.now.nodes_offset + 1
        self.now = replace(self.now, **{**more, "nodes_offset": offset, "topics_offset": offset})  # type: ignore[arg-type]
        self.images.append(self.now)

    def _with_node(self, changed: Node) -> dict[NodeId, Node]:
        return {**self.now.nodes, changed.node_id: changed}

    def leave(self, node_id: NodeId) -> None:
        """It is fenced, and out of every ISR in which it is not the last; others lead."""
        partitions = tuple(_without(one, node_id) for one in self.now.partitions)
        others = [one for one in self.now.voters if one != node_id]
        leader = others[0] if self.now.leader == node_id and others else self.now.leader
        self.change(
            nodes=self._with_node(replace(self.now.nodes[node_id], is_serving=False)),
            partitions=partitions,
            leader=leader,
        )

    def come(self, node_id: NodeId, *, in_new_life: bool = True) -> None:
        """It registers, and serves; it is in sync later."""
        epoch = self.now.nodes_offset if in_new_life else self.now.nodes[node_id].epoch
        self.change(nodes=self._with_node(replace(self.now.nodes[node_id], is_serving=True, epoch=epoch)))

    def catch_up(self, node_id: NodeId) -> None:
        partitions = tuple(
            replace(one, isr=(*one.isr, node_id), leader=one.leader if one.leader >= 0 else node_id)
            if node_id in one.missing
            else replace(one, leader=node_id if one.leader < 0 and node_id in one.isr else one.leader)
            for one in self.now.partitions
        )
        self.change(partitions=partitions)

    def look(self, nodes_back: int = 0, topics_back: int = 0, rolls_back: int = 0) -> Picture:
        """By brokers whose metadata are so many changes old."""
        of_nodes = self.images[max(-len(self.images), -1 - nodes_back)]
        of_topics = self.images[max(-len(self.images), -1 - topics_back)]
        found = replace(
            of_nodes,
            partitions=of_topics.partitions,
            topics_offset=of_topics.topics_offset,
            rolls=self.images[max(-len(self.images), -1 - rolls_back)].rolls,
            high_watermark=self.now.nodes_offset,
        )
        if self.tells_epochs:
            return found
        nodes = {node_id: replace(one, epoch=-1) for node_id, one in found.nodes.items()}
        return replace(found, nodes=nodes, nodes_offset=-1, topics_offset=-1)

    def claim(self, claim: Claim) -> None:
        """Two changes, as two requests."""
        if claim.instead_of:
            self.release(claim.instead_of)
        self.change(rolls=(*self.now.rolls, claim.mark))

    def release(self, mark: str) -> None:
        self.change(rolls=tuple(one for one in self.now.rolls if one != mark))

    @property
    def is_whole(self) -> bool:
        return all(one.is_serving for one in self.now.nodes.values()) and not any(
            one.missing or one.leader < 0 for one in self.now.partitions
        )


def _without(one: Partition, node_id: NodeId) -> Partition:
    if node_id not in one.isr:
        return one
    isr = tuple(other for other in one.isr if other != node_id) or one.isr
    leader = one.leader if one.leader != node_id else next((other for other in isr if other != node_id), -1)
    return replace(one, isr=isr, leader=leader)
