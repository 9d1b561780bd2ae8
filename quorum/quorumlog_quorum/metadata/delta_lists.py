"""What a delta lists: the entries that changed between its base and the records replayed, in the order of keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from immutables import Map

from quorumlog.ids import NodeId, Uuid
from quorumlog_quorum.metadata.image import ConfigResource, Image, TopicImage
from quorumlog_quorum.metadata.registration import BrokerRegistration, PartitionRegistration


@dataclass(frozen=True, slots=True)
class ChangedPartition:
    """before: None for a partition that is new in this delta."""

    topic: TopicImage
    index: int
    before: PartitionRegistration | None
    after: PartitionRegistration


@dataclass(slots=True)
class Touched:
    """Keys of entries that may have changed; dicts, because sets have no order.

    vanished: topics that went without a record that this node knows of.
    """

    brokers: dict[NodeId, None] = field(default_factory=dict)
    topics: dict[Uuid, None] = field(default_factory=dict)
    partitions: dict[Uuid, dict[int, None]] = field(default_factory=dict)
    configs: dict[ConfigResource, None] = field(default_factory=dict)
    vanished: dict[Uuid, None] = field(default_factory=dict)


_NO_TOPIC = TopicImage("", bytes(16), Map())


class DeltaLists:
    """The lists of `Delta`, which has the state that they are made of."""

    base: Image
    _touched: Touched
    _brokers: Map[NodeId, BrokerRegistration]

    @property
    def _topics(self) -> Map[Uuid, TopicImage]:
        raise NotImplementedError

    @property
    def changed_brokers(self) -> list[NodeId]:
        """Registered, changed or unregistered, by id. An unregistered one is not in the new image."""
        return [
            broker_id
            for broker_id in sorted(self._touched.brokers)
            if self._brokers.get(broker_id) is not self.base.brokers.get(broker_id)
        ]

    @property
    def changed_topics(self) -> list[TopicImage]:
        """Topics that are new or have a new or changed partition, as they are now, by id."""
        topics = self._topics
        return [topics[topic_id] for topic_id in sorted(self._touched.topics) if topic_id in topics]

    @property
    def deleted_topics(self) -> list[TopicImage]:
        """As the base had them, by id. A committed record removed each of them."""
        return [topic for topic in self._gone_topics() if topic.id not in self._touched.vanished]

    @property
    def vanished_topics(self) -> list[TopicImage]:
        """As the base had them, by id: absent from a snapshot that does not say why. None of them may be deleted."""
        return [topic for topic in self._gone_topics() if topic.id in self._touched.vanished]

    def _gone_topics(self) -> list[TopicImage]:
        topics, before = self._topics, self.base.topics
        return [before[one] for one in sorted(self._touched.topics) if one not in topics and one in before]

    def changed_partitions(self) -> Iterator[ChangedPartition]:
        """New or changed, of topics that still exist, by topic id and index. One by one: there may be 100,000."""
        topics = self._topics
        for topic_id in sorted(self._touched.partitions):
            topic, before = topics.get(topic_id), self.base.topics.get(topic_id, _NO_TOPIC)
            if topic is None:
                continue
            for index in sorted(self._touched.partitions[topic_id]):
                after = topic.partitions.get(index)
                if after is not None:
                    yield ChangedPartition(topic, index, before.partitions.get(index), after)

    @property
    def partition_changes(self) -> int:
        """How many partitions are new or changed, those of deleted topics included."""
        return sum(map(len, self._touched.partitions.values()))

    @property
    def changed_configs(self) -> list[ConfigResource]:
        """Resources with a setting that was set or removed, deleted topics included, by type and name."""
        return sorted(self._touched.configs)
