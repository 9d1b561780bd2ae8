"""What a topic of the target needs to hold the source's records as they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1
KEPT_AS_IT_IS: Mapping[str, str] = {  # whatever the source has: a copy has the original's time, and is longer than it
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(MAX_LONG),
    "message.timestamp.after.max.ms": str(MAX_LONG),
    "message.timestamp.difference.max.ms": str(MAX_LONG),  # of Kafka below 4.0
    "max.message.bytes": str(MAX_INT),
}
OF_A_CLUSTER = frozenset(  # MirrorMaker's config.properties.exclude, and what only stands for a broker's own state
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "min.insync.replicas",
        "unclean.leader.election.enable",
        "unclean.recovery.strategy",
        "remote.storage.enable",
        "retention.paused",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShape:
    """own: settings of the topic itself, not of its cluster. known: names that its cluster knows. replication: of its
    first partition."""

    partitions: int
    replication: int = 1
    own: Mapping[str, str] = field(default_factory=dict)
    known: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TopicChange:
    """What one topic of the target lacks. partitions: to raise to; 0: enough are there. settings: None is the
    default."""

    partitions: int = 0
    settings: Mapping[str, str | None] = field(default_factory=dict)


def change_of(source: TopicShape, target: TopicShape, *, is_home: bool) -> TopicChange:
    """is_home: the target had the topic first; only its partitions and what a copy needs are changed there."""
    wanted = {name: value for name, value in KEPT_AS_IT_IS.items() if name in target.known}
    settings: dict[str, str | None] = {}
    if not is_home:
        copied = {
            name: value for name, value in source.own.items() if name in target.known and name not in OF_A_CLUSTER
        }
        wanted = {**copied, **wanted}
        settings = {name: None for name in target.own if name not in wanted and name not in OF_A_CLUSTER}
    settings |= {name: value for name, value in wanted.items() if target.own.get(name) != value}
    return TopicChange(source.partitions if source.partitions > target.partitions else 0, settings)
