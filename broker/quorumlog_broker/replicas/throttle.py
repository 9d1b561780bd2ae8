"""The replication throttle of a broker (KIP-73): which replicas it holds back, and for how long.

Two of the same kind: one for what the broker sends as a leader, one for what it fetches as a follower, each with a rate
of its own. A replica that is in sync is never held back, because producers wait for it; its bytes count all the same,
as in Kafka, so that both together stay within the rate. Rates and replicas are read from the newest image.

With no rate set it costs one comparison.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from quorumlog.clock import Clock
from quorumlog.ids import NodeId
from quorumlog.throttle_settings import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    NO_RATE,
    names_replica,
)
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.own_settings import rate_set
from quorumlog_broker.replicas.rate_quota import RateQuota
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE, Image


class HasImage(Protocol):
    @property
    def image(self) -> Image: ...


class ReplicationThrottle:
    def __init__(self, node_id: NodeId, registry: HasImage, clock: Clock, *, rate: str, replicas: str) -> None:
        """rate, replicas: the names of the settings of this side."""
        self._node_id, self._registry, self._clock = node_id, registry, clock
        self._rate_name, self._replicas_name = rate, replicas
        self._quota = RateQuota()

    @property
    def is_on(self) -> bool:
        return self._quota.is_on

    def settings_changed(self) -> None:
        rate = rate_set(self._registry.image, self._node_id, self._rate_name)
        self._quota.set_rate(NO_RATE if rate is None else rate, self._clock.now_ms())

    def counts(self, key: PartitionKey) -> bool:
        """The replica of this partition on this broker is named, and there is a rate."""
        if not self.is_on:
            return False
        image, (topic_id, index) = self._registry.image, key
        topic = image.topics.get(topic_id)
        if topic is None:
            return False
        settings = image.configs.get((TOPIC_RESOURCE, topic.name))
        text = settings.get(self._replicas_name) if settings is not None else None
        return text is not None and names_replica(text, index, self._node_id)

    def held_back_ms(self, key: PartitionKey, follower: NodeId) -> int:
        """For how long this follower gets nothing of this partition; 0: it may read on now."""
        if not self.counts(key) or self._is_in_sync(key, follower):
            return 0
        return self._quota.delay_ms(self._clock.now_ms())

    def left_bytes(self, key: PartitionKey, follower: NodeId, wanted: int) -> int:
        """How much of `wanted` this follower may have now; at least 1 unless it is held back."""
        if not self.counts(key) or self._is_in_sync(key, follower):
            return wanted
        return min(wanted, self._quota.left_bytes(self._clock.now_ms()))

    def spend(self, key: PartitionKey, follower: NodeId, size_bytes: int) -> None:
        """This follower got, or gets, so much of this partition."""
        if not size_bytes or not self.counts(key):
            return
        spend = self._quota.spend_unasked if self._is_in_sync(key, follower) else self._quota.spend
        spend(size_bytes, self._clock.now_ms())

    def charge(self, key: PartitionKey, follower: NodeId, size_bytes: int) -> int:
        """Spend beforehand what may be held back. Returns how much was spent: `settle` says what became of it."""
        if not size_bytes or not self.counts(key) or self._is_in_sync(key, follower):
            return 0
        self._quota.spend(size_bytes, self._clock.now_ms())
        return size_bytes

    def settle(self, charged_bytes: int, size_bytes: int) -> None:
        self._quota.spend(size_bytes - charged_bytes, self._clock.now_ms())

    def _is_in_sync(self, key: PartitionKey, follower: NodeId) -> bool:
        found = self._registry.image.partition(*key)
        return found is not None and follower in found.isr


class Throttles(NamedTuple):
    leader: ReplicationThrottle
    follower: ReplicationThrottle

    @classmethod
    def of(cls, node_id: NodeId, registry: HasImage, clock: Clock) -> Throttles:
        return cls(
            ReplicationThrottle(node_id, registry, clock, rate=LEADER_RATE, replicas=LEADER_REPLICAS),
            ReplicationThrottle(node_id, registry, clock, rate=FOLLOWER_RATE, replicas=FOLLOWER_REPLICAS),
        )

    def settings_changed(self) -> None:
        self.leader.settings_changed()
        self.follower.settings_changed()
