"""Settings of the group coordinator, by Kafka's names with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from quorumlog.settings.key import NodeKey, number, parse_list, setting
from quorumlog.settings.types import MAX_INT

DAY_MS = 24 * 3_600_000
UNIFORM, RANGE = "uniform", "range"  # server-side assignors (KIP-848)
BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED = "bidirectional", "upgrade", "downgrade", "disabled"
MIGRATION_POLICIES = (BIDIRECTIONAL, UPGRADE, DOWNGRADE, DISABLED)
_MINUTE_MS = 60_000
_ASSIGNOR_CLASS = "org.apache.kafka.coordinator.group.assignor."
_ASSIGNORS = {
    UNIFORM: UNIFORM,
    RANGE: RANGE,
    f"{_ASSIGNOR_CLASS}UniformAssignor": UNIFORM,
    f"{_ASSIGNOR_CLASS}RangeAssignor": RANGE,
}
_LEAST_REGEX_REFRESH_MS = 10_000


def _parse_assignors(text: str) -> tuple[str, ...]:
    """Names of assignors, or the classes of Kafka that have these names."""
    given = parse_list(text)
    unknown = [name for name in given if name not in _ASSIGNORS]
    if unknown or not given:
        raise ValueError(f"{unknown[0] if unknown else text!r} is no assignor; there are {UNIFORM} and {RANGE}")
    names = [_ASSIGNORS[name] for name in given]
    if len({*names}) < len(names):
        raise ValueError(f"{text!r} names an assignor twice")
    return tuple(names)


def _parse_policy(text: str) -> str:
    policy = text.strip().lower()
    if policy not in MIGRATION_POLICIES:
        raise ValueError(f"{text!r} must be one of {', '.join(MIGRATION_POLICIES)}")
    return policy


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

    session_timeout_ms: int = setting(
        number(
            "group.consumer.session.timeout.ms",
            45_000,
            1,
            "A member of the consumer protocol is out after such a silence.",
        )
    )
    min_session_timeout_ms: int = setting(
        number("group.consumer.min.session.timeout.ms", 45_000, 1, "Shortest session time-out that one group may have.")
    )
    max_session_timeout_ms: int = setting(
        number("group.consumer.max.session.timeout.ms", 60_000, 1, "Longest session time-out that one group may have.")
    )
    heartbeat_interval_ms: int = setting(
        number("group.consumer.heartbeat.interval.ms", 5_000, 1, "Time between the heartbeats of a member.")
    )
    min_heartbeat_interval_ms: int = setting(
        number("group.consumer.min.heartbeat.interval.ms", 5_000, 1, "Shortest interval that one group may have.")
    )
    max_heartbeat_interval_ms: int = setting(
        number("group.consumer.max.heartbeat.interval.ms", 15_000, 1, "Longest interval that one group may have.")
    )
    assignment_interval_ms: int = setting(
        number(
            "group.consumer.assignment.interval.ms",
            1_000,
            0,
            "Least time between two assignments of a group; changes of its members are collected meanwhile.",
        )
    )
    min_assignment_interval_ms: int = setting(
        number("group.consumer.min.assignment.interval.ms", 0, 0, "Shortest such time that one group may have.")
    )
    max_assignment_interval_ms: int = setting(
        number("group.consumer.max.assignment.interval.ms", 15_000, 0, "Longest such time that one group may have.")
    )
    max_size: int = setting(
        number("group.consumer.max.size", MAX_INT, 1, "Most members of a group of the consumer protocol.")
    )
    assignors: tuple[str, ...] = setting(
        NodeKey(
            name="group.consumer.assignors",
            parse=_parse_assignors,
            default=f"{UNIFORM},{RANGE}",
            doc="The assignors that members may ask for; the first one is for those that ask for none.",
        )
    )
    migration_policy: str = setting(
        NodeKey(
            name="group.consumer.migration.policy",
            parse=_parse_policy,
            default="bidirectional",
            doc="Which groups with members may change their protocol: upgrade (from classic to consumer), downgrade, "
            "bidirectional or disabled. Groups without members always may.",
        )
    )
    regex_refresh_interval_ms: int = setting(
        number(
            "group.consumer.regex.refresh.interval.ms",
            600_000,
            _LEAST_REGEX_REFRESH_MS,
            "How often the topics that a subscribed regular expression means are looked up again.",
        )
    )

    @property
    def settings(self) -> ConsumerSettings:
        """Of a group that has none of its own."""
        return ConsumerSettings(self.session_timeout_ms, self.heartbeat_interval_ms, self.assignment_interval_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Times in ms, sizes in members or UTF-16 units, as Kafka counts them."""

    min_session_timeout_ms: int = setting(
        number("group.min.session.timeout.ms", 6_000, 1, "Shortest session time-out that a member may ask for.")
    )
    max_session_timeout_ms: int = setting(
        number("group.max.session.timeout.ms", 1_800_000, 1, "Longest session time-out that a member may ask for.")
    )
    initial_rebalance_delay_ms: int = setting(
        number(
            "group.initial.rebalance.delay.ms",
            3_000,
            0,
            "How long the first rebalance of an empty group waits for more members; again while some come.",
        )
    )
    max_size: int = setting(number("group.max.size", MAX_INT, 1, "Most members of a group."))
    max_groups: int = setting(
        number("group.coordinator.max.groups", 100_000, 1, "Most groups of one partition of __consumer_offsets.")
    )
    max_offsets: int = setting(
        number("group.coordinator.max.offsets", 1_000_000, 1, "Most partitions for which one group commits offsets.")
    )
    max_waiting_calls: int = setting(
        number(
            "group.coordinator.max.waiting.calls",
            100_000,
            1,
            "Most calls of one partition of __consumer_offsets that wait, for their records or for other members.",
        )
    )
    new_member_join_timeout_ms: int = 300_000  # not a setting in Kafka, either
    metadata_max_bytes: int = setting(
        number(
            "offset.metadata.max.bytes", 4_096, 0, "Longest text that may be committed with an offset, in characters."
        )
    )
    offsets_commit_timeout_ms: int = setting(
        number(
            "offsets.commit.timeout.ms", 5_000, 1, "A commit that is not on every in-sync replica by then is refused."
        )
    )
    offsets_retention_ms: int = setting(
        number("offsets.retention.minutes", 10_080, 1, "How long the offsets of an empty group are kept."),
        made=lambda minutes: minutes * _MINUTE_MS,
    )
    offsets_retention_check_interval_ms: int = setting(
        number("offsets.retention.check.interval.ms", 600_000, 1, "Time between two looks for offsets to forget.")
    )
    consumer: ConsumerGroupConfig = field(default_factory=ConsumerGroupConfig)
