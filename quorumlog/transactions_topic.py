"""How `__transaction_state` is made. These settings count only then; afterwards they are the topic's own."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.internal_topics import TRANSACTION_STATE
from quorumlog.messages.cluster import CreatableTopic
from quorumlog.messages.common import ConfigEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsTopicConfig:
    """By Kafka's names and with its defaults; `transaction.state.log.` in front."""

    num_partitions: int = 50
    replication_factor: int = 3
    min_isr: int = 2
    segment_bytes: int = 104_857_600

    def creatable(self) -> CreatableTopic:
        """What a decision is worth is decided here, whatever other topics are content with.

        With fewer replicas than `min_isr` all of them have to be in sync: otherwise no transaction could be begun.
        """
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "durability": "synced",
            "min.insync.replicas": str(min(self.min_isr, self.replication_factor)),
            "segment.bytes": str(self.segment_bytes),
            "unclean.leader.election.enable": "false",
        }
        return CreatableTopic(
            name=TRANSACTION_STATE,
            num_partitions=self.num_partitions,
            replication_factor=self.replication_factor,
            configs=tuple(ConfigEntry(name=name, value=value) for name, value in settings.items()),
        )
