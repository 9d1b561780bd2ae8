"""What groups read of the cluster's metadata: topics with their partitions and racks, and settings of single groups.

It has a version of its own, which rises only where something has changed that a group could notice: groups compare it
at each heartbeat. A new leader or a new ISR is nothing to them, and those are most of what metadata tells.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.configs.group import ASSIGNMENT_INTERVAL, setting_of
from quorumlog.configs.live import ASSIGNMENT_INTERVAL as ASSIGNMENT_INTERVAL_OF_ALL
from quorumlog.ids import NodeId, Uuid
from quorumlog.settings.groups import ConsumerGroupConfig
from quorumlog_broker.coordinator.groups.consumer.settings import Topic
from quorumlog_broker.replicas.own_settings import own_setting
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import EMPTY, GROUP_RESOURCE, Image
from quorumlog_quorum.metadata.registration import PartitionRegistration


class GroupMetadata:
    """A `Cluster`. version: rises by 1 with each change."""

    def __init__(self, node_id: NodeId, config: ConsumerGroupConfig) -> None:
        """node_id: of this broker, whose own settings count."""
        self.version = 0
        self._node_id, self._config = node_id, config
        self._image = EMPTY
        self._topics: dict[str, Topic] = {}  # those that were asked for in this version
        self._names: tuple[str, ...] | None = None

    def apply(self, delta: Delta, image: Image) -> None:
        self._image = image
        if _concerns_groups(delta, image):
            self.version += 1
            self._topics.clear()
            self._names = None

    def topic(self, name: str) -> Topic | None:
        found = self._topics.get(name)
        if found is None:
            topic = self._image.topic(name)
            if topic is None:
                return None
            racks = self._racks(topic.sorted_partitions())
            found = self._topics[name] = Topic(topic.id, name, len(topic.partitions), racks)
        return found

    def name_of(self, topic_id: Uuid) -> str | None:
        topic = self._image.topics.get(topic_id)
        return None if topic is None else topic.name

    def topic_names(self) -> Sequence[str]:
        """Sorted. Internal topics are among them, as in Kafka: who wants none names none by its expression."""
        if self._names is None:
            self._names = tuple(sorted(self._image.topic_ids))
        return self._names

    def group_setting(self, group_id: str, name: str) -> int | None:
        """Within the limits of this broker's file. None: the group has none, and that of all groups was not changed."""
        values = self._image.configs.get((GROUP_RESOURCE, group_id))
        own = None if values is None else setting_of(self._config, values, name)
        if own is not None or name != ASSIGNMENT_INTERVAL:
            return own
        return own_setting(self._image, self._node_id, ASSIGNMENT_INTERVAL_OF_ALL, self._config.assignment_interval_ms)

    def _racks(self, partitions: list[tuple[int, PartitionRegistration]]) -> tuple[tuple[str, ...], ...]:
        """Of the replicas of each partition, sorted; empty if no broker has a rack."""
        brokers = self._image.brokers
        rack_of = {one: broker.rack for one, broker in brokers.items() if broker.rack is not None}
        if not rack_of:
            return ()
        return tuple(
            tuple(sorted({rack_of[one] for one in partition.replicas if one in rack_of})) for _, partition in partitions
        )


def _concerns_groups(delta: Delta, image: Image) -> bool:
    return (
        any(kind == GROUP_RESOURCE for kind, _ in delta.changed_configs)
        or bool(delta.deleted_topics or delta.vanished_topics)
        or any(_rack(delta.base, one) != _rack(image, one) for one in delta.changed_brokers)
        or any(
            change.before is None or change.before.replicas != change.after.replicas
            for change in delta.changed_partitions()
        )
    )


def _rack(image: Image, broker_id: int) -> str | None:
    broker = image.brokers.get(broker_id)
    return None if broker is None else broker.rack
