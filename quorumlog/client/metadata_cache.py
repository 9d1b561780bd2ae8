"""What a client knows of the cluster: brokers, partitions, leaders. Pure: responses go in, look-ups come out.

Rule: of two answers about a partition's leader, the newer leader epoch wins, in whatever order they arrive (KIP-320).
Exception: the topic was deleted and created again, and has another topic id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Uuid
from quorumlog.messages.cluster import MetadataResponse, TopicMetadata
from quorumlog.messages.common import CurrentLeader, NodeEndpoint
from quorumlog.rpc.transport import Address


@dataclass(slots=True)
class KnownLeader:
    leader_id: NodeId  # -1: none at the moment
    epoch: Epoch


@dataclass(slots=True)
class KnownTopic:
    topic_id: Uuid
    partitions: dict[int, KnownLeader]

    @property
    def partition_count(self) -> int:
        return len(self.partitions)


class MetadataCache:
    """Brokers and topics as last reported."""

    def __init__(self) -> None:
        self.brokers: dict[NodeId, Address] = {}
        self.topics: dict[str, KnownTopic] = {}
        self.cluster_id = ""
        self.controller_id: NodeId = NO_NODE

    def update(self, response: MetadataResponse) -> None:
        """Take in a metadata response. Topics that it does not contain keep their last known state."""
        self.cluster_id = response.cluster_id or self.cluster_id
        self.controller_id = response.controller_id
        if response.brokers:
            self.brokers = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        for topic in response.topics:
            if topic.error_code == ErrorCode.NONE:
                self._update_topic(topic)
            elif topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self.topics.pop(topic.name, None)

    def leader_of(self, topic: str, partition: int) -> KnownLeader | None:
        """None if the topic or the partition is not known."""
        known = self.topics.get(topic)
        return known.partitions.get(partition) if known else None

    def take_hint(self, topic: str, partition: int, hint: CurrentLeader, nodes: Iterable[NodeEndpoint]) -> bool:
        """Take the leader that a refusing broker named (KIP-951). True if it is newer and its address is known."""
        known = self.leader_of(topic, partition)
        if known is None or hint.leader_epoch <= known.epoch or hint.leader_id == NO_NODE:
            return False
        for node in nodes:
            self.brokers[node.node_id] = Address(node.host, node.port)
        known.leader_id, known.epoch = hint.leader_id, hint.leader_epoch
        return hint.leader_id in self.brokers

    def _update_topic(self, topic: TopicMetadata) -> None:
        old = self.topics.get(topic.name)
        same = old is not None and (not topic.topic_id or old.topic_id == topic.topic_id)
        partitions: dict[int, KnownLeader] = {}
        for partition in sorted(topic.partitions, key=lambda p: p.index):
            news = KnownLeader(partition.leader_id, partition.leader_epoch)
            before = old.partitions.get(partition.index) if old is not None and same else None
            partitions[partition.index] = before if before is not None and before.epoch > news.epoch else news
        self.topics[topic.name] = KnownTopic(topic.topic_id, partitions)
