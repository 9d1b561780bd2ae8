"""Which topics a mirror takes, what they are called on the target (KIP-382), and what they need there. Pure.

A topic of the source is one of three kinds. Its own: it goes under the target's name for it. One that holds copies of
the target's records: it goes home. One that holds copies of a third cluster's records is left out: that cluster is
mirrored from itself, and a chain of mirrors would copy each record several times (KAFKA-9914).

Settings of the target's topics are such that it holds the source's records as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum

from quorumlog.client.errors import ConfigError
from quorumlog.errors import ApiError
from quorumlog.spark.mirror.records import Entry
from quorumlog.topic_name import validate_topic_name

HEARTBEATS = "heartbeats"
MAX_ALIAS = 100  # characters: the target's names have it in front
NOT_MIRRORED = (
    rf"(?!__)(?!{HEARTBEATS}$)(?!.*[.-]internal$)"  # as MirrorMaker leaves out what tools keep for themselves
)


class Names(StrEnum):
    PREFIXED = "prefixed"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Side:
    """A cluster of the mirror, as its user calls it."""

    alias: str
    cluster_id: str


@dataclass(frozen=True, slots=True)
class Named:
    """to: the target's name of each topic that is mirrored. homes: those of `to` that hold copies of the target's own
    records. left_out: why another one that the user asked for is not."""

    to: Mapping[str, str]
    homes: frozenset[str] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)


def check_alias(alias: str) -> None:
    """Raises ConfigError."""
    if not 0 < len(alias) <= MAX_ALIAS or re.fullmatch(r"[A-Za-z0-9_-]+", alias) is None:
        raise ConfigError(
            f"{alias!r} is no alias of a cluster: it is 1 to {MAX_ALIAS} letters, digits, '_' and '-', since the "
            "target's topics have it in front: --from east=host1:9092"
        )


def topic_pattern(topics: str) -> str:
    """A regular expression for `subscribePattern`, of the whole name. topics: one, or several with commas, as
    MirrorMaker has them. Raises ConfigError."""
    parts = [part.strip() for part in topics.split(",") if part.strip()]
    if not parts:
        raise ConfigError("--topics names no topic: give a regular expression of whole names, as 'orders.*'")
    for part in parts:
        try:
            re.compile(part)
        except re.error as error:
            raise ConfigError(f"--topics: {part!r} is not a regular expression: {error}") from error
    return f"^{NOT_MIRRORED}(?:{'|'.join(f'(?:{part})' for part in parts)})$"


def with_homes(pattern: str, copies: Mapping[str, Entry], homes: Iterable[str]) -> str:
    """The pattern, and the topics of copies whose first name it takes, so that who asks for `orders` on the way back
    need not ask for `east.orders`. homes: ids of the clusters whose records go home."""
    wanted, at_home = re.compile(pattern), set(homes)
    more = sorted(
        name for name, entry in copies.items() if entry.cluster_id in at_home and wanted.search(entry.topic) is not None
    )
    return "|".join([pattern, *(f"^{re.escape(name)}$" for name in more)])


def name_topics(
    topics: Iterable[str],
    pattern: str,
    names: Names,
    source: Side,
    target: Side,
    copies: Mapping[str, Entry],
    restored: str = "",
) -> Named:
    """topics: of the source. pattern: of `with_homes`. copies: of the source, what its topics of copies mirror.

    restored: the id of a cluster whose records come home to the target, besides the target's own; "": none.
    """
    wanted = re.compile(pattern)
    to: dict[str, str] = {}
    homes: set[str] = set()
    taken: dict[str, str] = {}  # by name on the target
    left_out: dict[str, str] = {}
    for topic in sorted(topics):
        if not wanted.search(topic):
            continue
        entry = copies.get(topic)
        if entry is not None and entry.cluster_id not in (target.cluster_id, restored):
            left_out[topic] = (
                f"it holds copies of cluster {entry.cluster_id}: mirror them from there, not through a third"
            )
            continue
        name = entry.topic if entry is not None else _remote(topic, names, source)
        why = _why_not(name, taken.get(name))
        if why:
            left_out[topic] = why
            continue
        to[topic], taken[name] = name, topic
        if entry is not None:
            homes.add(topic)
    return Named(to, frozenset(homes), left_out)


def _remote(topic: str, names: Names, source: Side) -> str:
    return topic if names is Names.SAME else f"{source.alias}.{topic}"


def _why_not(name: str, other: str | None) -> str:
    """other: the topic that has this name on the target already."""
    if other is not None:
        return f"it would be {name!r} on the target, as topic {other!r} is"
    try:
        validate_topic_name(name)
    except ApiError as error:
        return f"{name!r} cannot be a topic: {error.message}"
    return ""


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
