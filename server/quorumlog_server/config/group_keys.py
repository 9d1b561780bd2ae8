"""Keys of consumer groups: Kafka's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorumlog.group_config import GroupConfig
from quorumlog.node_settings import MAX_INT, NodeKey, number, parse_int, parse_list, size
from quorumlog.offsets_topic import OffsetsTopicConfig
from quorumlog_server.config.consumer_group_keys import CONSUMER_GROUP_KEYS, consumer_group_config
from quorumlog_server.config.properties import ConfigError

_MINUTE_MS = 60_000
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


GROUP_KEYS = (
    number("group.min.session.timeout.ms", 6_000, 1, "Shortest session time-out that a member may ask for."),
    number("group.max.session.timeout.ms", 1_800_000, 1, "Longest session time-out that a member may ask for."),
    number(
        "group.initial.rebalance.delay.ms",
        3_000,
        0,
        "How long the first rebalance of an empty group waits for more members; again while some come.",
    ),
    number("group.max.size", MAX_INT, 1, "Most members of a group."),
    number("group.coordinator.max.groups", 100_000, 1, "Most groups of one partition of __consumer_offsets."),
    number("group.coordinator.max.offsets", 1_000_000, 1, "Most partitions for which one group commits offsets."),
    number(
        "group.coordinator.max.waiting.calls",
        100_000,
        1,
        "Most calls of one partition of __consumer_offsets that wait, for their records or for other members.",
    ),
    number("offset.metadata.max.bytes", 4_096, 0, "Longest text that may be committed with an offset, in characters."),
    number("offsets.commit.timeout.ms", 5_000, 1, "A commit that is not on every in-sync replica by then is refused."),
    number("offsets.retention.minutes", 10_080, 1, "How long the offsets of an empty group are kept."),
    number("offsets.retention.check.interval.ms", 600_000, 1, "Time between two looks for offsets to forget."),
    number("offsets.topic.num.partitions", 50, 1, "Partitions of __consumer_offsets when it is made."),
    number(
        "offsets.topic.replication.factor",
        3,
        1,
        "Replicas of __consumer_offsets when it is made; until there are so many brokers no group can be used.",
        maximum=32_767,
    ),
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
    size("offsets.topic.segment.bytes", 104_857_600, 1 << 20, "Segment size of __consumer_offsets when it is made."),
    *CONSUMER_GROUP_KEYS,
)


def group_config(node: Mapping[str, Any]) -> GroupConfig:
    """node: the values of all keys by name. Raises ConfigError for values that contradict each other."""
    if node["group.min.session.timeout.ms"] > node["group.max.session.timeout.ms"]:
        raise ConfigError("group.min.session.timeout.ms is above group.max.session.timeout.ms; no member could join")
    return GroupConfig(
        min_session_timeout_ms=node["group.min.session.timeout.ms"],
        max_session_timeout_ms=node["group.max.session.timeout.ms"],
        initial_rebalance_delay_ms=node["group.initial.rebalance.delay.ms"],
        max_size=node["group.max.size"],
        max_groups=node["group.coordinator.max.groups"],
        max_offsets=node["group.coordinator.max.offsets"],
        max_waiting_calls=node["group.coordinator.max.waiting.calls"],
        metadata_max_bytes=node["offset.metadata.max.bytes"],
        offsets_retention_ms=node["offsets.retention.minutes"] * _MINUTE_MS,
        offsets_retention_check_interval_ms=node["offsets.retention.check.interval.ms"],
        offsets_commit_timeout_ms=node["offsets.commit.timeout.ms"],
        consumer=consumer_group_config(node),
    )


def offsets_topic(node: Mapping[str, Any]) -> OffsetsTopicConfig:
    return OffsetsTopicConfig(
        num_partitions=node["offsets.topic.num.partitions"],
        replication_factor=node["offsets.topic.replication.factor"],
        segment_bytes=node["offsets.topic.segment.bytes"],
    )
