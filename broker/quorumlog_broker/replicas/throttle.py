"""The replication throttle of a broker (KIP-73): which replicas it holds back, and for how long.

Two of the same kind: one for what the broker sends as a leader, one for what it fetches as a follower, each with a rate
of its own. A replica that is in sync is never held back, because producers wait for it; its bytes count all the same,
as in Kafka, so that both together stay within the rate. Rates and replicas are read from the newest image.

With no rate set it costs one comparison.

Bytes per second as a balance that fills with time. Pure.

It fills at the rate, up to what BURST_MS bring. Whoever may take takes what there is, and may overdraw it by the last
batch, because batches are not divided. Nothing may be taken until there is as much as PORTION_MS bring: so a throttled
partition is looked at a few times a second, however slow the rate and however small its batches.

What may not wait is spent, too, and never makes a debt of more than DEBT_MS: else hours of traffic above the rate would
hold everything else back for hours afterwards. (Kafka forgets what was sent before its windows, 11 s by default.)

Between two moments at most rate × time + burst + what was overdrawn passes, and a greedy taker gets the rate.
"""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.clock import Clock
from quorumlog.configs.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    NO_RATE,
    names_replica,
)
from quorumlog.ids import NodeId
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.own_settings import rate_set
from quorumlog_broker.replicas.registry import Registry
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE

BURST_MS = 1_000
PORTION_MS = 100
DEBT_MS = 10_000
LONGEST_DELAY_MS = 1_000  # a rate that is raised is noticed after so long


class RateQuota:
    def __init__(self) -> None:
        self._rate = NO_RATE  # bytes per second
        self._balance = 0.0  # bytes; negative: overdrawn
        self._at_ms = 0

    @property
    def is_on(self) -> bool:
        return self._rate != NO_RATE

    def set_rate(self, rate: int, now_ms: int) -> None:
        """rate: bytes per second; NO_RATE: no limit. A new limit begins with an empty balance."""
        if rate == self._rate:
            return
        self._fill(now_ms)
        self._balance = min(self._balance, 0.0) if self.is_on else 0.0
        self._rate, self._at_ms = rate, now_ms

    def left_bytes(self, now_ms: int) -> int:
        """What may be taken now; 0: nothing yet, `delay_ms` says when."""
        self._fill(now_ms)
        return int(self._balance) if self._balance >= self._portion else 0

    def delay_ms(self, now_ms: int) -> int:
        """How long nothing may be taken; 0: something may be taken now. At most LONGEST_DELAY_MS."""
        if self.left_bytes(now_ms):
            return 0
        if self._rate == 0:
            return LONGEST_DELAY_MS
        missing = self._portion - self._balance
        return max(1, min(LONGEST_DELAY_MS, int(missing * 1000 / self._rate) + 1))

    def spend(self, size_bytes: int, now_ms: int) -> None:
        if self.is_on:
            self._fill(now_ms)
            self._balance -= size_bytes

    def spend_unasked(self, size_bytes: int, now_ms: int) -> None:
        """What passes whatever the balance is."""
        if self.is_on:
            self._fill(now_ms)
            lowest = min(self._balance, -self._rate * DEBT_MS / 1000)
            self._balance = max(lowest, self._balance - size_bytes)

    @property
    def _portion(self) -> float:
        return max(1.0, self._rate * PORTION_MS / 1000)

    def _fill(self, now_ms: int) -> None:
        if not self.is_on:
            return
        passed_ms = max(0, now_ms - self._at_ms)
        self._at_ms = max(self._at_ms, now_ms)
        self._balance = min(max(1.0, self._rate * BURST_MS / 1000), self._balance + self._rate * passed_ms / 1000)


class ReplicationThrottle:
    def __init__(self, node_id: NodeId, registry: Registry, clock: Clock, *, rate: str, replicas: str) -> None:
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
    def of(cls, node_id: NodeId, registry: Registry, clock: Clock) -> Throttles:
        return cls(
            ReplicationThrottle(node_id, registry, clock, rate=LEADER_RATE, replicas=LEADER_REPLICAS),
            ReplicationThrottle(node_id, registry, clock, rate=FOLLOWER_RATE, replicas=FOLLOWER_REPLICAS),
        )

    def settings_changed(self) -> None:
        self.leader.settings_changed()
        self.follower.settings_changed()
