"""Keys of groups of the consumer protocol (KIP-848): Kafka's names, defaults and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorumlog.group_config import MIGRATION_POLICIES, RANGE, UNIFORM, ConsumerGroupConfig
from quorumlog.node_settings import MAX_INT, NodeKey, number, parse_list
from quorumlog_server.config.properties import ConfigError

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


CONSUMER_GROUP_KEYS = (
    number(
        "group.consumer.session.timeout.ms", 45_000, 1, "A member of the consumer protocol is out after such a silence."
    ),
    number("group.consumer.min.session.timeout.ms", 45_000, 1, "Shortest session time-out that one group may have."),
    number("group.consumer.max.session.timeout.ms", 60_000, 1, "Longest session time-out that one group may have."),
    number("group.consumer.heartbeat.interval.ms", 5_000, 1, "Time between the heartbeats of a member."),
    number("group.consumer.min.heartbeat.interval.ms", 5_000, 1, "Shortest interval that one group may have."),
    number("group.consumer.max.heartbeat.interval.ms", 15_000, 1, "Longest interval that one group may have."),
    number(
        "group.consumer.assignment.interval.ms",
        1_000,
        0,
        "Least time between two assignments of a group; changes of its members are collected meanwhile.",
    ),
    number("group.consumer.min.assignment.interval.ms", 0, 0, "Shortest such time that one group may have."),
    number("group.consumer.max.assignment.interval.ms", 15_000, 0, "Longest such time that one group may have."),
    number("group.consumer.max.size", MAX_INT, 1, "Most members of a group of the consumer protocol."),
    NodeKey(
        name="group.consumer.assignors",
        parse=_parse_assignors,
        default=f"{UNIFORM},{RANGE}",
        doc="The assignors that members may ask for; the first one is for those that ask for none.",
    ),
    NodeKey(
        name="group.consumer.migration.policy",
        parse=_parse_policy,
        default="bidirectional",
        doc="Which groups with members may change their protocol: upgrade (from classic to consumer), downgrade, "
        "bidirectional or disabled. Groups without members always may.",
    ),
    number(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        _LEAST_REGEX_REFRESH_MS,
        "How often the topics that a subscribed regular expression means are looked up again.",
    ),
)


def consumer_group_config(node: Mapping[str, Any]) -> ConsumerGroupConfig:
    """node: the values of all keys by name. Raises ConfigError for values that contradict each other."""
    config = ConsumerGroupConfig(
        session_timeout_ms=node["group.consumer.session.timeout.ms"],
        min_session_timeout_ms=node["group.consumer.min.session.timeout.ms"],
        max_session_timeout_ms=node["group.consumer.max.session.timeout.ms"],
        heartbeat_interval_ms=node["group.consumer.heartbeat.interval.ms"],
        min_heartbeat_interval_ms=node["group.consumer.min.heartbeat.interval.ms"],
        max_heartbeat_interval_ms=node["group.consumer.max.heartbeat.interval.ms"],
        assignment_interval_ms=node["group.consumer.assignment.interval.ms"],
        min_assignment_interval_ms=node["group.consumer.min.assignment.interval.ms"],
        max_assignment_interval_ms=node["group.consumer.max.assignment.interval.ms"],
        max_size=node["group.consumer.max.size"],
        assignors=node["group.consumer.assignors"],
        migration_policy=node["group.consumer.migration.policy"],
        regex_refresh_interval_ms=node["group.consumer.regex.refresh.interval.ms"],
    )
    _check(config)
    return config


def _check(config: ConsumerGroupConfig) -> None:
    ranges = (
        ("session.timeout.ms", config.min_session_timeout_ms, config.session_timeout_ms, config.max_session_timeout_ms),
        (
            "heartbeat.interval.ms",
            config.min_heartbeat_interval_ms,
            config.heartbeat_interval_ms,
            config.max_heartbeat_interval_ms,
        ),
        (
            "assignment.interval.ms",
            config.min_assignment_interval_ms,
            config.assignment_interval_ms,
            config.max_assignment_interval_ms,
        ),
    )
    for name, low, value, high in ranges:
        if not low <= value <= high:
            raise ConfigError(
                f"group.consumer.{name}={value} must lie between group.consumer.min.{name}={low} and "
                f"group.consumer.max.{name}={high}"
            )
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        raise ConfigError(
            f"group.consumer.heartbeat.interval.ms={config.heartbeat_interval_ms} must be below "
            f"group.consumer.session.timeout.ms={config.session_timeout_ms}, or no member stays alive"
        )
