"""How `__consumer_offsets` is made. These settings count only then; afterwards they are the topic's own."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.internal_topics import CONSUMER_OFFSETS
from quorumlog.messages.cluster import CreatableTopic
from quorumlog.messages.common import ConfigEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsTopicConfig:
    """By Kafka's names and with its defaults; `offsets.topic.` in front."""

    num_partitions: int = 50
    replication_factor: int = 3
    segment_bytes: int = 104_857_600

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
