"""What holds for a group: the settings of the broker, and where it has them, its own."""

from __future__ import annotations

from quorumlog.group_config import ConsumerGroupConfig, GroupConfig
from quorumlog_broker.coordinator.groups.consumer.cluster import Cluster, FixedCluster


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
