"""Leaders go back to the preferred replicas, broker by broker, once too many of a broker's leaderships are elsewhere.

A broker's imbalance is the share of the partitions whose first replica it is and that another broker leads. Every
`leader.imbalance.check.interval.seconds` the partitions of each broker whose imbalance is above
`leader.imbalance.per.broker.percentage` get an election of the preferred leader; it leads where it is alive and in
sync. Kafka's KRaft controller has no percentage; its earlier controllers had.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from immutables import Map

from quorumlog.ids import NO_NODE, NodeId, Uuid
from quorumlog.settings.controller import ControllerConfig
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.change_partitions import change_partitions
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.partitions.election import Election, TopicRules, Wish
from quorumlog_quorum.metadata.partition_index import Partitions
from quorumlog_quorum.metadata.registration import PartitionRegistration

PREFERRED = Wish(election=Election.PREFERRED)


@dataclass(slots=True)
class BalanceTimer:
    """When leaders are balanced next. interval_ms: 0: never."""

    interval_ms: int
    deadline_ms: int | None = None

    @classmethod
    def of(cls, config: ControllerConfig) -> BalanceTimer:
        enabled = config.auto_leader_rebalance_enable
        return cls(config.leader_imbalance_check_interval_seconds * 1_000 if enabled else 0)

    def begin(self, now_ms: int) -> None:
        """The next time is one interval from now."""
        self.deadline_ms = now_ms + self.interval_ms if self.interval_ms else None

    def end(self) -> None:
        self.deadline_ms = None


def balance_leaders(draft: Draft) -> Sliced[None]:
    """In slices, like every pass over all partitions."""
    found = _Found()
    topics = draft.image.topics  # as it is now: the elections look again
    for topic_id in sorted(topics):
        for index, partition in topics[topic_id].partitions.items():
            if draft.full:
                yield
            draft.spend(1)
            found.look(topic_id, index, partition)
    which = found.of_imbalanced(draft.state.config.leader_imbalance_per_broker_percentage)
    if which:
        yield from change_partitions(draft, which, is_led_elsewhere, _preferred)


class _Found:
    """Of all partitions: how many each broker should lead, and which of these it does not."""

    def __init__(self) -> None:
        self._preferred: Counter[NodeId] = Counter()
        self._elsewhere: dict[NodeId, dict[Uuid, int]] = {}  # by preferred leader: as in `Partitions`

    def look(self, topic_id: Uuid, index: int, partition: PartitionRegistration) -> None:
        broker_id = partition.replicas[0]
        self._preferred[broker_id] += 1
        if is_led_elsewhere(partition):
            of_broker = self._elsewhere.setdefault(broker_id, {})
            of_broker[topic_id] = of_broker.get(topic_id, 0) | 1 << index

    def of_imbalanced(self, percentage: int) -> Partitions:
        """The partitions that imbalanced brokers should lead and do not."""
        which: dict[Uuid, int] = {}
        for broker_id, of_broker in self._elsewhere.items():
            count = sum(bits.bit_count() for bits in of_broker.values())
            if count * 100 > percentage * self._preferred[broker_id]:
                for topic_id, bits in of_broker.items():
                    which[topic_id] = which.get(topic_id, 0) | bits
        return Map(which)


def is_led_elsewhere(partition: PartitionRegistration) -> bool:
    """A partition without a leader has another problem."""
    return partition.leader not in (NO_NODE, partition.replicas[0])


def _preferred(_partition: PartitionRegistration, _rules: TopicRules) -> Wish:
    return PREFERRED
