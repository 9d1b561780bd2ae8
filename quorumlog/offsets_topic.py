"""How `__consumer_offsets` is made. These settings count only then; afterwards they are the topic's own."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.messages.cluster import CreatableTopic
from quorumlog.messages.common import ConfigEntry
from quorumlog.settings.key import number, setting, size
from quorumlog.topic_name import CONSUMER_OFFSETS


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsTopicConfig:
    """By Kafka's names and with its defaults; `offsets.topic.` in front."""

    num_partitions: int = setting(
        number("offsets.topic.num.partitions", 50, 1, "Partitions of __consumer_offsets when it is made.")
    )
    replication_factor: int = setting(
        number(
            "offsets.topic.replication.factor",
            3,
            1,
            "Replicas of __consumer_offsets when it is made; until there are so many brokers no group can be used.",
            maximum=32_767,
        )
    )
    segment_bytes: int = setting(
        size("offsets.topic.segment.bytes", 104_857_600, 1 << 20, "Segment size of __consumer_offsets when it is made.")
    )

    def creatable(self) -> CreatableTopic:
        """What an acknowledged commit is worth is decided here, whatever other topics are content with."""
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "durability": "synced",
            "segment.bytes": str(self.segment_bytes),
        }
        return CreatableTopic(
            name=CONSUMER_OFFSETS,
            num_partitions=self.num_partitions,
            replication_factor=self.replication_factor,
            configs=tuple(ConfigEntry(name=name, value=value) for name, value in settings.items()),
        )
