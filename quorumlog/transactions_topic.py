"""How `__transaction_state` is made. These settings count only then; afterwards they are the topic's own."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.messages.cluster import CreatableTopic
from quorumlog.messages.common import ConfigEntry
from quorumlog.settings.key import number, setting, size
from quorumlog.settings.types import MAX_INT
from quorumlog.topic_name import TRANSACTION_STATE


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsTopicConfig:
    """By Kafka's names and with its defaults; `transaction.state.log.` in front."""

    num_partitions: int = setting(
        number("transaction.state.log.num.partitions", 50, 1, "Partitions of __transaction_state when it is made.")
    )
    replication_factor: int = setting(
        number(
            "transaction.state.log.replication.factor",
            3,
            1,
            "Replicas of __transaction_state when it is made; until there are so many brokers no transaction can be "
            "begun.",
            maximum=32_767,
        )
    )
    min_isr: int = setting(
        number(
            "transaction.state.log.min.isr",
            2,
            1,
            "min.insync.replicas of __transaction_state when it is made, but not more than it has replicas.",
            maximum=MAX_INT,
        )
    )
    segment_bytes: int = setting(
        size("transaction.state.log.segment.bytes", 104_857_600, 1 << 20, "Segment size of __transaction_state then.")
    )

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
