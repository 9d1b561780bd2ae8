"""Keys of consumer groups: Kafka's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorumlog.offsets_topic import OffsetsTopicConfig
from quorumlog.settings.groups import ConsumerGroupConfig, GroupConfig
from quorumlog.settings.key import NodeKey, keys_of, parse_int, parse_list, part_of
from quorumlog_server.config.properties import ConfigError

_NO_CODEC = 0  # Kafka's number
_SERVED, _NOT_SERVED = ("classic", "consumer"), ("share", "streams")


def _parse_codec(text: str) -> int:
    codec = parse_int(text)
    if codec != _NO_CODEC:
        raise ValueError(f"{text.strip()} is a codec, but commits are written without compression here; 0 says so")
    return codec


def _parse_protocols(text: str) -> tuple[str, ...]:
    """Kafka's list of protocols that are on. Whoever leaves one out wants it off, and must not be deceived."""
    given = parse_list(text)
    for name in given:
        if name not in (*_SERVED, *_NOT_SERVED):
            raise ValueError(f"{name!r} is no protocol; there are {' and '.join(_SERVED)}")
    if any(name not in given for name in _SERVED):
        raise ValueError(
            f"{text!r} turns a protocol off; here {' and '.join(_SERVED)} stand together, and "
            "`quorumlog feature downgrade group.version=0` turns the consumer protocol off for the whole cluster"
        )
    return given


CONSUMER_GROUP_KEYS = keys_of(ConsumerGroupConfig)
_PARTITIONS, _FACTOR, _SEGMENT_BYTES = keys_of(OffsetsTopicConfig)
GROUP_KEYS = (  # in the order in which DescribeConfigs answers
    *keys_of(GroupConfig, last="offsets.retention.check.interval.ms"),
    _PARTITIONS,
    _FACTOR,
    NodeKey(
        name="offsets.topic.compression.codec",
        parse=_parse_codec,
        default=str(_NO_CODEC),
        doc="Compression of committed offsets: 0, none, is the only one.",
    ),
    NodeKey(
        name="group.coordinator.rebalance.protocols",
        parse=_parse_protocols,
        default=",".join(_SERVED),
        doc="Protocols of groups: classic and consumer, always both; the feature group.version turns the second one "
        "off. share and streams may stand here, too, and are not served.",
    ),
    _SEGMENT_BYTES,
    *CONSUMER_GROUP_KEYS,
)


def group_config(node: Mapping[str, Any]) -> GroupConfig:
    """node: the values of all keys by name. Raises ConfigError for values that contradict each other."""
    if node["group.min.session.timeout.ms"] > node["group.max.session.timeout.ms"]:
        raise ConfigError("group.min.session.timeout.ms is above group.max.session.timeout.ms; no member could join")
    consumer = part_of(ConsumerGroupConfig, node)
    _check(consumer)
    return part_of(GroupConfig, node, consumer=consumer)


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
