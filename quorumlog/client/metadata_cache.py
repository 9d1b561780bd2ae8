"""What a client knows of the cluster: brokers, partitions, leaders. Pure: answers go in, look-ups come out.

Rule: of two answers about a partition's leader the one with the newer leader epoch counts, whatever order they came in
(KIP-320), unless the topic was deleted and made anew (another topic id).
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
    """Brokers and topics as last heard of."""

    def __init__(self) -> None:
        self.brokers: dict[NodeId, Address] = {}
        self.topics: dict[str, KnownTopic] = {}
        self.cluster_id = ""
        self.controller_id: NodeId = NO_NODE

    def update(self, response: MetadataResponse) -> None:
        """Take in a whole answer; topics it does not speak of stay as they were."""
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
        """None where topic or partition are not known."""
        known = self.topics.get(topic)
        return known.partitions.get(partition) if known else None

    def take_hint(self, topic: str, partition: int, hint: CurrentLeader, nodes: Iterable[NodeEndpoint]) -> bool:
        """A refusing broker said who leads (KIP-951). True where that is news that can be acted on."""
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
