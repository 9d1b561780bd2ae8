"""The settings of topics: Kafka's names, types, defaults and ranges, and one of ours (`durability`).

Values are sent and stored as text, as in Kafka; here they are checked and parsed. An unknown key is refused when a user
sets it (`validate`), and ignored when metadata is applied (`TopicConfig.from_map`), because a newer controller must not
stop an older broker. Sources: Kafka's topic configuration reference (4.x); docs/guarantees.md for `durability`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.settings.config_key import MAX_LONG, ConfigKey, Kind, parse_text, words
from quorumlog.settings.types import MAX_INT

PARSED_TEXTS = 1_024  # remembered: 4 MB at most
RETENTION_PAUSED = "retention.paused"
LEADER_THROTTLED_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLED_REPLICAS = "follower.replication.throttled.replicas"
EVERY_REPLICA = "*"
REPLICA_WORDS = r"\*|[0-9]{1,10}:[0-9]{1,10}"
_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")


def _whole(name: str, default: int, minimum: int, maximum: int, doc: str) -> ConfigKey:
    return ConfigKey(name=name, kind=Kind.WHOLE, default=str(default), minimum=minimum, maximum=maximum, doc=doc)


def _boolean(name: str, default: bool, doc: str) -> ConfigKey:
    return ConfigKey(name=name, kind=Kind.BOOLEAN, default=str(default).lower(), doc=doc)


def _choice(name: str, default: str, choices: tuple[str, ...], doc: str) -> ConfigKey:
    return ConfigKey(name=name, kind=Kind.CHOICE, default=default, choices=choices, doc=doc)


_KEYS = (
    ConfigKey(
        name="cleanup.policy",
        kind=Kind.CHOICES,
        default="delete",
        choices=("compact", "delete"),
        may_be_empty=True,
        doc="What happens to old segments: deleted by age and size, compacted by key, or both; empty: they stay.",
    ),
    _choice(
        "compression.type",
        "producer",
        ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "Codec of stored batches; `producer` keeps what the producer sent.",
    ),
    _whole("compression.gzip.level", -1, -1, 9, "Level of gzip, where batches are compressed anew; -1: zlib's own."),
    _whole("compression.lz4.level", 9, 1, 17, "Level of lz4, where batches are compressed anew; 9: the fast one."),
    _whole("compression.zstd.level", 3, -131_072, 22, "Level of zstd, where batches are compressed anew."),
    _whole("delete.retention.ms", 86_400_000, 0, MAX_LONG, "How long compaction keeps a tombstone."),
    _choice(
        "durability",
        "synced",
        ("synced", "replicated"),
        "Where an acknowledged write is: on disk on every in-sync replica, or (Kafka's rule) in their page caches.",
    ),
    _whole("file.delete.delay.ms", 60_000, 0, MAX_LONG, "Delay between renaming a file as deleted and removing it."),
    _whole(
        "flush.messages",
        MAX_LONG,
        1,
        MAX_LONG,
        "With `durability=replicated`: after this many records a sync comes before the acknowledgement.",
    ),
    _whole(
        "flush.ms", MAX_LONG, 0, MAX_LONG, "With `durability=replicated`: longest time between an append and its sync."
    ),
    _whole("index.interval.bytes", 4_096, 0, MAX_INT, "Bytes of log between two entries of the offset index."),
    _whole("internal.segment.bytes", 0, 0, MAX_INT, "For tests: a size below the limit of `segment.bytes`; 0: off."),
    _whole("local.retention.bytes", -2, -2, MAX_LONG, "Of tiered storage (`remote.storage.enable`): no effect."),
    _whole("local.retention.ms", -2, -2, MAX_LONG, "Of tiered storage (`remote.storage.enable`): no effect."),
    _whole("max.compaction.lag.ms", MAX_LONG, 1, MAX_LONG, "Longest time that a record may stay uncompacted."),
    _whole("max.message.bytes", 1_048_588, 0, MAX_INT, "Largest record batch that is accepted, in bytes."),
    _whole(
        "message.timestamp.after.max.ms",
        3_600_000,
        0,
        MAX_LONG,
        "How far a timestamp may be ahead of the broker's clock.",
    ),
    _whole(
        "message.timestamp.before.max.ms",
        MAX_LONG,
        0,
        MAX_LONG,
        "How far a timestamp may be behind the broker's clock.",
    ),
    _choice(
        "message.timestamp.type",
        "CreateTime",
        ("CreateTime", "LogAppendTime"),
        "Which time a record carries: the producer's, or the leader's at the append.",
    ),
    ConfigKey(
        name="min.cleanable.dirty.ratio",
        kind=Kind.FRACTION,
        default="0.5",
        minimum=0,
        maximum=1,
        doc="Share of a log that must be uncompacted before the cleaner compacts it.",
    ),
    _whole("min.compaction.lag.ms", 0, 0, MAX_LONG, "Shortest time that a record stays uncompacted."),
    _whole("min.insync.replicas", 1, 1, MAX_INT, "Smallest ISR with which acks=all is accepted."),
    _boolean("preallocate", False, "Reserve room on the disk for a new segment's whole size at once."),
    _boolean("remote.log.copy.disable", False, "Of tiered storage (`remote.storage.enable`): no effect."),
    _boolean("remote.log.delete.on.disable", False, "Of tiered storage (`remote.storage.enable`): no effect."),
    ConfigKey(
        name="remote.storage.enable",
        kind=Kind.BOOLEAN,
        default="false",
        choices=("false",),
        hint="; there is no tiered storage, every record is local",
        doc="Tiered storage, which is not offered: `false` only, so that a topic of Kafka's can be copied with it.",
    ),
    _whole("retention.bytes", -1, -1, MAX_LONG, "Partition size above which old segments are deleted; -1: no limit."),
    _whole("retention.ms", 604_800_000, -1, MAX_LONG, "Age at which a segment is deleted; -1: never."),
    _boolean(RETENTION_PAUSED, False, "Keep everything, whatever its age, size and key; an import begins so."),
    _whole("segment.bytes", 1_073_741_824, 1_048_576, MAX_INT, "Size at which a segment is closed."),
    _whole("segment.index.bytes", 10_485_760, 4, MAX_INT, "Largest size of one index file."),
    _whole("segment.jitter.ms", 0, 0, MAX_LONG, "Largest random time subtracted from `segment.ms`, to spread rolls."),
    _whole("segment.ms", 604_800_000, 1, MAX_LONG, "Age at which a segment is closed even if it is not full."),
    ConfigKey(
        name=LEADER_THROTTLED_REPLICAS,
        kind=Kind.LIST,
        default="",
        pattern=REPLICA_WORDS,
        alone=EVERY_REPLICA,
        doc="Replicas whose leaders send no faster than their broker's throttled rate: * or PARTITION:BROKER,...",
    ),
    ConfigKey(
        name=FOLLOWER_THROTTLED_REPLICAS,
        kind=Kind.LIST,
        default="",
        pattern=REPLICA_WORDS,
        alone=EVERY_REPLICA,
        doc="Replicas that are fetched no faster than their broker's throttled rate: * or PARTITION:BROKER,...",
    ),
    _boolean("unclean.leader.election.enable", False, "Allow a leader that may lack acknowledged records."),
    ConfigKey(
        name="unclean.recovery.strategy",
        kind=Kind.CHOICE,
        default="None",
        choices=("None", "Balanced"),
        hint="; Aggressive is not offered: unclean.leader.election.enable=true elects at once",
        doc="Where no replica is known to be whole: wait (`None`), or elect the longest log (`Balanced`).",
    ),
)

TOPIC_CONFIGS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}


def validate(name: str, value: str, keys: Mapping[str, ConfigKey] = TOPIC_CONFIGS) -> None:
    """Raise ApiError(INVALID_CONFIG) unless `keys` has `name`, and allows `value`."""
    key = _key(name, keys)
    if TOPIC_CONFIGS.get(name) is key:
        _parse(name, value)
    else:
        parse_text(key, value)


def validate_words(values: Mapping[str, str], keys: Mapping[str, ConfigKey] = TOPIC_CONFIGS) -> None:
    """Check how lists are written that are being set: no choice is empty, and a word that stands for all is alone.

    Apart from `validate_all`, since older software has stored others, which are read as before. Call that one first.
    Raises ApiError(INVALID_CONFIG). Source: Kafka 4.3's `ConfigDef.ValidList` and `ThrottledReplicaListValidator`.
    """
    for name in sorted(values):
        key, parts = keys[name], [part.strip() for part in values[name].split(",")]
        if key.kind is Kind.CHOICES and len(parts) > 1 and "" in parts:
            text = f"{name}={values[name]!r}: a word is missing beside a comma; choose of {', '.join(key.choices)}"
            raise ApiError(ErrorCode.INVALID_CONFIG, text)
        if key.alone and len(parts) > 1 and key.alone in parts:
            text = f"{name}={values[name]!r}: {key.alone} names all, so write it alone, or the others without it"
            raise ApiError(ErrorCode.INVALID_CONFIG, text)


def validate_all(values: Mapping[str, str], keys: Mapping[str, ConfigKey] = TOPIC_CONFIGS) -> None:
    """Check each entry, then the entries against each other. Raises ApiError(INVALID_CONFIG)."""
    for name in sorted(values):
        validate(name, values[name], keys)
    if not any(name in values for name in _LAGS):
        return
    low, high = (_parsed(name, values) for name in _LAGS)
    if low > high:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"min.compaction.lag.ms={low} is above max.compaction.lag.ms={high}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """A topic's settings, parsed. Times in ms, sizes in bytes; -1 in `retention_*`: no limit."""

    cleanup_policy: tuple[str, ...]  # sorted
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    durability: str  # synced | replicated
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    index_interval_bytes: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str  # CreateTime | LogAppendTime
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    retention_bytes: int
    retention_ms: int
    retention_paused: bool  # then both are -1, and nothing is compacted
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool
    unclean_recovery_strategy: str  # None | Balanced

    @property
    def synced(self) -> bool:
        """True if an acknowledgement waits for the disk."""
        return self.durability == "synced"

    @staticmethod
    def from_map(overrides: Mapping[str, str], defaults: Mapping[str, str] | None = None) -> TopicConfig:
        """overrides: set on the topic. defaults: the broker's, by the topic's key names; Kafka's for the others.

        Unknown keys are ignored. Raises ApiError(INVALID_CONFIG) for a value that cannot be parsed.
        """
        values = {**(defaults or {}), **overrides}
        parsed: dict[str, Any] = dict(_DEFAULTS)
        small = int(_parsed("internal.segment.bytes", values))
        for name, text in values.items():
            field = _FIELDS.get(name)
            if field is not None and not (small and field == "segment_bytes"):
                parsed[field] = _value(name, text)
        if small:
            parsed["segment_bytes"] = small
        if parsed["retention_paused"]:
            parsed["retention_bytes"] = parsed["retention_ms"] = -1
        return TopicConfig(**parsed)


def _key(name: str, keys: Mapping[str, ConfigKey]) -> ConfigKey:
    if name in keys:
        return keys[name]
    nearest = difflib.get_close_matches(name, keys, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    raise ApiError(ErrorCode.INVALID_CONFIG, f"unknown topic config {name}{hint}")


def _value(name: str, text: str) -> int | float | str | tuple[str, ...]:
    """As the field of TopicConfig has it. Raises ApiError(INVALID_CONFIG)."""
    number = _parse(name, text)
    kind = TOPIC_CONFIGS[name].kind
    if kind is Kind.CHOICES:
        return tuple(sorted(set(words(text))))
    return text if kind is Kind.CHOICE else number


def _parsed(name: str, values: Mapping[str, str]) -> int | float:
    return _parse(name, values.get(name, TOPIC_CONFIGS[name].default))


@lru_cache(maxsize=PARSED_TEXTS)
def _parse(name: str, text: str) -> int | float:
    """`parse_text`, remembered: a change is parsed when it is checked, and again by each node and for each image that
    it concerns."""
    return parse_text(TOPIC_CONFIGS[name], text)


# The settings that are fields of TopicConfig, and what those are where nothing is set.
_FIELDS: Mapping[str, str] = {field.name.replace("_", "."): field.name for field in fields(TopicConfig)}
_DEFAULTS: Mapping[str, Any] = {field: _value(name, TOPIC_CONFIGS[name].default) for name, field in _FIELDS.items()}
