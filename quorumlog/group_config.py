"""Settings of the group coordinator, by Kafka's names with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

DAY_MS = 24 * 3_600_000
UNIFORM, RANGE = "uniform", "range"  # server-side assignors (KIP-848)
BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED = "bidirectional", "upgrade", "downgrade", "disabled"
MIGRATION_POLICIES = (BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED)


class ConsumerSettings(NamedTuple):
    """Of one group of the consumer protocol. Times in ms; each within the limits of `ConsumerGroupConfig`."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """Of groups of the consumer protocol (KIP-848). Each setting is Kafka's `group.consumer.*`; times in ms.

    The limits are inclusive, and for what is set for a single group.
    """

    session_timeout_ms: int = 45_000
    min_session_timeout_ms: int = 45_000
    max_session_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 5_000
    min_heartbeat_interval_ms: int = 5_000
    max_heartbeat_interval_ms: int = 15_000
    assignment_interval_ms: int = 1_000
    min_assignment_interval_ms: int = 0
    max_assignment_interval_ms: int = 15_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = (UNIFORM, RANGE)  # the first one is for members that name none
    migration_policy: str = BIDIRECTIONAL  # one of MIGRATION_POLICIES: between the protocols, while a group has members
    regex_refresh_interval_ms: int = 600_000

    @property
    def settings(self) -> ConsumerSettings:
        """Of a group that has none of its own."""
        return ConsumerSettings(self.session_timeout_ms, self.heartbeat_interval_ms, self.assignment_interval_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Times in ms, sizes in members or UTF-16 units, as Kafka counts them."""

    min_session_timeout_ms: int = 6_000  # group.min.session.timeout.ms
    max_session_timeout_ms: int = 1_800_000  # group.max.session.timeout.ms
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    max_size: int = 2**31 - 1  # group.max.size
    max_groups: int = 100_000  # group.coordinator.max.groups: of one partition of __consumer_offsets
    max_offsets: int = 1_000_000  # group.coordinator.max.offsets: of one group
    max_waiting_calls: int = 100_000  # group.coordinator.max.waiting.calls: of one partition of __consumer_offsets
    new_member_join_timeout_ms: int = 300_000  # not a setting in Kafka, either
    metadata_max_bytes: int = 4_096  # offset.metadata.max.bytes
    offsets_retention_ms: int = 7 * DAY_MS  # offsets.retention.minutes
    offsets_retention_check_interval_ms: int = 600_000  # offsets.retention.check.interval.ms
    offsets_commit_timeout_ms: int = 5_000  # offsets.commit.timeout.ms
    consumer: ConsumerGroupConfig = field(default_factory=ConsumerGroupConfig)
