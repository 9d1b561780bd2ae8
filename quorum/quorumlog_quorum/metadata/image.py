"""The cluster's metadata at one offset of its log. Immutable; images of neighbouring offsets share structure.

Many images can be held at little cost, and readers need no lock. `immutables.Map` iterates in the order of hashes:
where order matters, sort by key (`sorted_brokers`, `sorted_topics`, `TopicImage.sorted_partitions`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from immutables import Map

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.ids import NO_EPOCH, Epoch, NodeId, Offset, Uuid
from quorumlog_quorum.metadata.access import Access, RuleIds, access_hash
from quorumlog_quorum.metadata.canonical import MODULUS, entry_hash, packed_hash, setting_hash
from quorumlog_quorum.metadata.deleted_topics import DeletedTopic, deleted_topic_hash
from quorumlog_quorum.metadata.features import (
    GROUP_VERSION,
    JOINT_VERSION,
    METADATA_VERSION,
    TRANSACTION_VERSION,
    metadata_version,
)
from quorumlog_quorum.metadata.partition_index import PartitionIndex
from quorumlog_quorum.metadata.registration import BrokerRegistration, ControllerRegistration, PartitionRegistration

TOPIC_RESOURCE = 2  # Kafka's numbers of config resources
BROKER_RESOURCE = 4
BROKER_LOGGER_RESOURCE = 8  # of a process; the metadata has none
GROUP_RESOURCE = 32
RAISED_RESOURCE = 100  # not in Kafka: where durability was raised (controller/bulk_changes/raised_durability.py)
RAISED_END = "durability.raised.end"  # the only setting of such a resource: an offset, exclusive
HASHES_OF_SETTINGS = 2_048  # remembered; values have 4,000 characters at most
CLUSTER_DEFAULT = ""  # the name of the broker resource that holds the settings of all brokers

ConfigResource = tuple[int, str]  # (type, name)


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    id: Uuid
    partitions: Map[int, PartitionRegistration]

    def sorted_partitions(self) -> list[tuple[int, PartitionRegistration]]:
        return sorted(self.partitions.items(), key=lambda item: item[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """offset: exclusive end of the records that made the image. epoch: of the last of them; -1: there is none.

    topic_ids: the id of each topic in `topics`, by name. features: the finalized levels, by name.
    deleted: topics of which a registered broker may still hold a directory, by id.
    incarnation: of the cluster, as far as the records say.
    access: rules, credentials and quotas (access.py). rule_ids: of its rules, by what they say.
    state_hash: the `hash_of` this image. index: the `index_of` its topics. Delta keeps both up to date.
    """

    brokers: Map[NodeId, BrokerRegistration] = field(default_factory=Map)
    topics: Map[Uuid, TopicImage] = field(default_factory=Map)
    topic_ids: Map[str, Uuid] = field(default_factory=Map)
    configs: Map[ConfigResource, Map[str, str]] = field(default_factory=Map)
    features: Map[str, int] = field(default_factory=Map)
    controllers: Map[NodeId, ControllerRegistration] = field(default_factory=Map)
    next_producer_id: int = 0
    deleted: Map[Uuid, DeletedTopic] = field(default_factory=Map)
    incarnation: ClusterIncarnation = FIRST
    access: Access = field(default_factory=Map)
    rule_ids: RuleIds = field(default_factory=Map)
    offset: Offset = 0
    epoch: Epoch = NO_EPOCH
    state_hash: int = 0
    index: PartitionIndex = field(default_factory=PartitionIndex)

    @property
    def state_hash_bytes(self) -> bytes:
        return self.state_hash.to_bytes(16, "big")

    @property
    def metadata_version(self) -> int:
        """The level in force; it decides in which version records are written."""
        return metadata_version(self.features)

    @property
    def group_version(self) -> int:
        """1: groups may use the consumer protocol (KIP-848); 0: they may not."""
        return self.features.get(GROUP_VERSION, 0)

    @property
    def transaction_version(self) -> int:
        """What coordinators of transactions write, and what they offer to producers: 0, 1 or 2 (KIP-890)."""
        return self.features.get(TRANSACTION_VERSION, 0)

    @property
    def joint_version(self) -> int:
        """Which joint transactions there may be: 0: none; 1: what is open ends; 2: they begin (decision 112)."""
        return self.features.get(JOINT_VERSION, 0)

    def topic(self, name: str) -> TopicImage | None:
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition(self, topic_id: Uuid, index: int) -> PartitionRegistration | None:
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def topic_config(self, name: str) -> dict[str, str]:
        """A topic's settings over those of all brokers, as `TopicConfig.from_map` takes them."""
        cluster = self.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), Map())
        return {**cluster, **self.configs.get((TOPIC_RESOURCE, name), Map())}

    def sorted_brokers(self) -> list[BrokerRegistration]:
        """By broker id."""
        return [self.brokers[broker_id] for broker_id in sorted(self.brokers)]

    def sorted_controllers(self) -> list[ControllerRegistration]:
        """By node id."""
        return [self.controllers[node_id] for node_id in sorted(self.controllers)]

    def sorted_topics(self) -> list[TopicImage]:
        """By name."""
        return [self.topics[self.topic_ids[name]] for name in sorted(self.topic_ids)]

    def sorted_deleted(self) -> list[tuple[Uuid, DeletedTopic]]:
        """In the order of their deletion."""
        return sorted(self.deleted.items(), key=lambda item: item[1].offset)


EMPTY = Image()


def finalized_levels(image: Image) -> dict[str, int]:
    """Every feature that is on, by name in order. metadata.version always is, also where no record names its level."""
    return dict(sorted({METADATA_VERSION: image.metadata_version, **image.features}.items()))


def hash_of(image: Image) -> int:
    """The state hash, computed from scratch: the sum of the hashes of all entries."""
    total = sum(broker_hash(broker) for broker in image.brokers.values())
    for topic in image.topics.values():
        total += topic_hash(topic)
        total += sum(partition_hash(topic.id, index, partition) for index, partition in topic.partitions.items())
    for resource, values in image.configs.items():
        total += sum(config_hash(resource, name, value) for name, value in values.items())
    total += sum(feature_hash(name, level) for name, level in image.features.items())
    total += sum(controller_hash(controller) for controller in image.controllers.values())
    total += sum(deleted_topic_hash(topic_id, deleted) for topic_id, deleted in image.deleted.items())
    total += sum(access_hash(entry) for entry in image.access.values())
    total += incarnation_hash(image.incarnation)
    return (total + producer_ids_hash(image.next_producer_id)) % MODULUS


def broker_hash(broker: BrokerRegistration) -> int:
    return entry_hash(("broker", broker.broker_id), broker.value())


def controller_hash(controller: ControllerRegistration) -> int:
    return entry_hash(("controller", controller.controller_id), controller.value())


def topic_hash(topic: TopicImage) -> int:
    """Of the topic's name and id alone; its partitions are entries of their own."""
    return entry_hash(("topic", topic.id), topic.name)


def partition_hash(topic_id: Uuid, index: int, partition: PartitionRegistration) -> int:
    return packed_hash(b"partition", (index, *partition.numbers()), (topic_id, *partition.directories))


def known_partition_hash(topic_id: Uuid, index: int, partition: PartitionRegistration) -> int:
    """The same, computed once per registration: what a change takes out of the sum was put in by the change before it.

    A registration belongs to one partition for ever, because each is made from a record of that partition.
    """
    known = partition.known_hash
    if known is None:
        known = partition_hash(topic_id, index, partition)
        object.__setattr__(partition, "known_hash", known)
    return known


@lru_cache(maxsize=HASHES_OF_SETTINGS)
def config_hash(resource: ConfigResource, name: str, value: str) -> int:
    """Asked for as the new value and then as the old one, and by a controller for its tip and for its image."""
    return setting_hash(*resource, name, value)


def feature_hash(name: str, level: int) -> int:
    return entry_hash(("feature", name), level)


def producer_ids_hash(next_producer_id: int) -> int:
    """0 while no id has been given out, so that the hash of the empty image is 0."""
    return entry_hash(("producer ids",), next_producer_id) if next_producer_id else 0


def incarnation_hash(incarnation: ClusterIncarnation) -> int:
    """0 for a cluster that was never recovered, so that the hash of the empty image is 0."""
    return 0 if incarnation.is_first else entry_hash(("incarnation",), (incarnation.number, incarnation.id))
