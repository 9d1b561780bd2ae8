"""What was read of a cluster at one moment, as far as a roll looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorumlog.ids import NO_NODE, BrokerEpoch, NodeId, Offset, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """A controller as the quorum's leader sees it. lag: records behind that leader; -1: it has not fetched from it.

    since_fetch_ms: -1: not told. The leader itself has lag 0.
    """

    lag: int = 0
    since_fetch_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker, a controller, or both.

    epoch: of its registration as a broker, larger with each start; -1: a controller only, or the protocol does not tell
    it, as Apache Kafka's. is_serving: registered, neither fenced nor stopping; of a controller only always True.
    voter: None: it is no voter of the quorum.
    """

    node_id: NodeId
    host: str = ""
    port: int = -1
    rack: str = ""
    is_broker: bool = True
    epoch: BrokerEpoch = -1
    is_serving: bool = True
    voter: Voter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    topic: str
    index: int
    leader: NodeId = NO_NODE
    replicas: tuple[NodeId, ...] = ()
    isr: tuple[NodeId, ...] = ()
    min_isr: int = 1

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.index

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def missing(self) -> tuple[NodeId, ...]:
        return tuple(one for one in self.replicas if one not in self.isr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """leader: of the quorum; NO_NODE: none, or the quorum does not answer.

    nodes_offset, topics_offset: exclusive ends of the metadata that the nodes and the partitions were told by, which
    may be two brokers' metadata; -1: the protocol does not tell them. moving: partitions under reassignment.
    """

    nodes: Mapping[NodeId, Node] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()
    leader: NodeId = NO_NODE
    nodes_offset: Offset = -1
    topics_offset: Offset = -1
    high_watermark: Offset = -1
    moving: tuple[str, ...] = ()
    rolls: tuple[str, ...] = ()
    is_changing_voters: bool = False

    def __post_init__(self) -> None:
        assert all(node_id == one.node_id for node_id, one in self.nodes.items())

    @property
    def voters(self) -> list[NodeId]:
        return [node_id for node_id, one in self.nodes.items() if one.voter is not None]

    def leaderships(self, node_id: NodeId) -> int:
        return sum(one.leader == node_id for one in self.partitions)
