"""What holds for a group: the settings of the broker, and where it has them, its own.

What the groups need to know of the cluster's metadata: which topics there are, and the settings of groups.

The owner of the core passes in a `Cluster`; its shell reads the newest image of the metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple, Protocol

from quorumlog.ids import Uuid
from quorumlog.settings.groups import ConsumerGroupConfig, GroupConfig

HASHES = 8_192  # of topics that are remembered


class Topic(NamedTuple):
    """partitions: their number. racks: of the replicas of each partition, sorted; empty if no broker has a rack."""

    topic_id: Uuid
    name: str
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


class Cluster(Protocol):
    """The metadata at one version, which rises with each change."""

    @property
    def version(self) -> int: ...

    def topic(self, name: str) -> Topic | None:
        """None: there is no such topic."""

    def name_of(self, topic_id: Uuid) -> str | None:
        """None: there is no such topic, or no more."""

    def topic_names(self) -> Sequence[str]:
        """Of all topics that a consumer may subscribe to by a regular expression, sorted."""

    def group_setting(self, group_id: str, name: str) -> int | None:
        """A setting of this group alone, for example `consumer.session.timeout.ms`. None: it has none."""


class FixedCluster:
    """Of topics that are given. settings: by group and name."""

    def __init__(
        self,
        topics: Iterable[Topic] = (),
        version: int = 0,
        settings: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        self.version = version
        self._topics = {topic.name: topic for topic in topics}
        self._names = {topic.topic_id: topic.name for topic in self._topics.values()}
        self._settings = settings or {}

    def topic(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def name_of(self, topic_id: Uuid) -> str | None:
        return self._names.get(topic_id)

    def topic_names(self) -> Sequence[str]:
        return sorted(self._topics)

    def group_setting(self, group_id: str, name: str) -> int | None:
        return self._settings.get((group_id, name))


def metadata_hash(names: Iterable[str], cluster: Cluster) -> int:
    """An int64 that changes when a subscribed topic comes, goes, grows or moves between racks. 0: there is no topic.

    It is only compared, by the coordinator that wrote it or by a later one.
    """
    found = blake2b(digest_size=8)
    topics = [topic for name in sorted(names) if (topic := cluster.topic(name)) is not None]
    for topic in topics:
        found.update(_topic_hash(topic))
    return int.from_bytes(found.digest(), "big", signed=True) if topics else 0


@lru_cache(HASHES)
def _topic_hash(topic: Topic) -> bytes:
    return blake2b(repr(tuple(topic)).encode(), digest_size=8).digest()


class Settings:
    """cluster: the newest metadata; its owner sets it. A group's own setting is held within the broker's limits."""

    def __init__(self, config: GroupConfig) -> None:
        self.config = config
        self.cluster: Cluster = FixedCluster()

    @property
    def consumer(self) -> ConsumerGroupConfig:
        return self.config.consumer

    @property
    def assignors(self) -> tuple[str, ...]:
        return self.consumer.assignors

    def session_timeout_ms(self, group_id: str) -> int:
        ours = self.consumer
        own = self.cluster.group_setting(group_id, "consumer.session.timeout.ms")
        if own is None:
            return ours.session_timeout_ms
        return _within(own, ours.min_session_timeout_ms, ours.max_session_timeout_ms)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        ours = self.consumer
        own = self.cluster.group_setting(group_id, "consumer.heartbeat.interval.ms")
        if own is None:
            return ours.heartbeat_interval_ms
        return _within(own, ours.min_heartbeat_interval_ms, ours.max_heartbeat_interval_ms)

    def assignment_interval_ms(self, group_id: str) -> int:
        ours = self.consumer
        own = self.cluster.group_setting(group_id, "consumer.assignment.interval.ms")
        if own is None:
            return ours.assignment_interval_ms
        return _within(own, ours.min_assignment_interval_ms, ours.max_assignment_interval_ms)


def _within(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)
