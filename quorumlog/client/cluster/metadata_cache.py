"""What a client knows of the cluster: brokers, partitions, leaders. Pure: responses go in, look-ups come out.

A broker that is cut off answers from old metadata, so answers come in any order.

- Of two answers about a partition's leader, the newer leader epoch wins (KIP-320). Partitions do not become fewer. A
  record of a newer epoch, as the one before a committed offset, shows that whoever names an older leader is behind.
- A topic that is deleted and made again has another id (KIP-516) and other epochs. Of two ids, the one that newer
  metadata name wins: an answer says how far its metadata reach. Where it does not, an id that was not known before
  wins, and one that was replaced does not come back.
- A broker that does not know a topic does not say that there is none, if its metadata are older than the topic's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset, Uuid
from quorumlog.messages.cluster import MetadataResponse, TopicMetadata
from quorumlog.messages.common import CurrentLeader, NodeEndpoint
from quorumlog.rpc.transport import Address

MAX_REPLACED = 100  # ids of each topic's former lives that are remembered; the oldest is forgotten
NO_ID: Uuid = b""  # a cluster without topic ids


class TopicLife(NamedTuple):
    """Which of the topics that had a name, one after the other.

    metadata_offset: exclusive end of the newest metadata that are known to name this id; -1 if unknown.
    """

    topic_id: Uuid
    metadata_offset: Offset = -1


@dataclass(slots=True)
class KnownLeader:
    leader_id: NodeId  # -1: none at the moment
    epoch: Epoch


class LeaderPlace(NamedTuple):
    """A partition's leader, for another client."""

    leader_id: NodeId
    epoch: Epoch
    address: Address


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
        self._lives: dict[str, TopicLife] = {}  # the last one of each name, also while no broker knows the topic
        self._replaced: dict[str, dict[Uuid, None]] = {}  # oldest first
        self._told: dict[
            str, dict[int, KnownLeader]
        ] = {}  # leaders that others have told, of topics that are not known

    def update(self, response: MetadataResponse) -> bool:
        """Take in a metadata response. Topics that it does not contain keep their last known state.

        False: the broker is behind, and of a topic at least its answer does not count. Others may know more.
        """
        counts = True
        self.cluster_id = response.cluster_id or self.cluster_id
        self.controller_id = response.controller_id
        if response.brokers:
            self.brokers = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        for topic in response.topics:
            if topic.error_code == ErrorCode.NONE:
                life = TopicLife(topic.topic_id, response.metadata_offset)
                counts = self._begin(topic.name, life) and self._update_partitions(topic) and counts
            elif topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if 0 <= response.metadata_offset < self.life_of(topic.name).metadata_offset:
                    counts = False
                else:
                    self._forget(topic.name)
        return counts

    def leader_of(self, topic: str, partition: int) -> KnownLeader | None:
        """None if the topic or the partition is not known."""
        known = self.topics.get(topic)
        return known.partitions.get(partition) if known else self._told.get(topic, {}).get(partition)

    def leader_place(self, topic: str, partition: int) -> LeaderPlace | None:
        """None if it has no leader, or one whose address is not known."""
        leader = self.leader_of(topic, partition)
        address = None if leader is None else self.brokers.get(leader.leader_id)
        return None if leader is None or address is None else LeaderPlace(leader.leader_id, leader.epoch, address)

    def epoch_seen(self, topic: str, topic_id: Uuid, partition: int, epoch: Epoch) -> None:
        """The partition has a record of this leader epoch: a leader of an older one is none any more."""
        known = self.leader_of(topic, partition)
        if known is not None and known.epoch < epoch and not self.is_replaced(topic, topic_id):
            known.leader_id, known.epoch = NO_NODE, epoch

    def life_of(self, topic: str) -> TopicLife:
        """The last life that is known of. With an empty id if there is none, or the cluster has no topic ids."""
        return self._lives.get(topic, TopicLife(NO_ID))

    def have_lived(self, topics: Iterable[str]) -> bool:
        """Whether each of them is known by an id: whoever reads them wants no new topic of the name."""
        return all(self.life_of(topic).topic_id for topic in topics)

    def learn(self, topic: str, life: TopicLife) -> None:
        """Somebody else has heard of this life. If it is newer, only metadata that know it are taken from now on."""
        self._begin(topic, life)

    def learn_leader(self, topic: str, topic_id: Uuid, partition: int, leader: LeaderPlace) -> bool:
        """Somebody else has heard who leads a partition of the topic with this id. It may be asked before there are
        metadata: if it leads the partition no more, it says so. False: more is known, or the name has another topic."""
        if topic in self.topics or not topic_id or self.life_of(topic).topic_id != topic_id:
            return False
        self._told.setdefault(topic, {})[partition] = KnownLeader(leader.leader_id, leader.epoch)
        self.brokers[leader.leader_id] = leader.address
        return True

    def is_replaced(self, topic: str, topic_id: Uuid) -> bool:
        """The topic was deleted, and made again with another id than this one."""
        return bool(topic_id) and self.life_of(topic).topic_id not in (NO_ID, topic_id)

    def take_hint(
        self, topic: str, topic_id: Uuid, partition: int, hint: CurrentLeader, nodes: Iterable[NodeEndpoint]
    ) -> bool:
        """Take the leader that a refusing broker named (KIP-951). True if it is newer and its address is known.

        topic_id: that of the refused request; the epochs of another life say nothing.
        """
        known = self.leader_of(topic, partition)
        if known is None or hint.leader_epoch <= known.epoch or hint.leader_id == NO_NODE:
            return False
        if self.is_replaced(topic, topic_id):
            return False
        for node in nodes:
            self.brokers[node.node_id] = Address(node.host, node.port)
        known.leader_id, known.epoch = hint.leader_id, hint.leader_epoch
        return hint.leader_id in self.brokers

    def _begin(self, topic: str, life: TopicLife) -> bool:
        """False if this life is over: the broker that named it is behind."""
        before = self._lives.get(topic)
        if before is None or not before.topic_id or not life.topic_id or before.topic_id == life.topic_id:
            known = before or life
            self._lives[topic] = TopicLife(
                life.topic_id or known.topic_id, max(known.metadata_offset, life.metadata_offset)
            )
            return True
        replaced = self._replaced.setdefault(topic, {})
        if life.topic_id in replaced or 0 <= life.metadata_offset < before.metadata_offset:
            return False
        replaced[before.topic_id] = None
        if len(replaced) > MAX_REPLACED:
            del replaced[next(iter(replaced))]
        self._lives[topic] = life
        self._forget(topic)
        return True

    def _forget(self, topic: str) -> None:
        self.topics.pop(topic, None)
        self._told.pop(topic, None)

    def _update_partitions(self, topic: TopicMetadata) -> bool:
        """False: the leader of a partition at least is older than what is known."""
        old = self.topics.get(topic.name)
        told = self._told.pop(topic.name, {})
        before_all = old.partitions if old is not None else told
        partitions = dict(before_all) if topic.topic_id else {}  # without an id it may be another topic
        is_newest = True
        for partition in topic.partitions:
            before = before_all.get(partition.index)
            news = KnownLeader(partition.leader_id, partition.leader_epoch)
            is_older = before is not None and before.epoch > news.epoch
            is_newest = is_newest and not is_older
            partitions[partition.index] = before if before is not None and is_older else news
        self.topics[topic.name] = KnownTopic(self.life_of(topic.name).topic_id, dict(sorted(partitions.items())))
        return is_newest
