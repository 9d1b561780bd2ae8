"""The settings of topics: Kafka's names, types, defaults and ranges, and one of ours (`durability`).

Values are sent and stored as text, as in Kafka; here they are checked and parsed. An unknown key is refused when a user
sets it (`validate`), and ignored when metadata is applied (`TopicConfig.from_map`), because a newer controller must not
stop an older broker. Sources: Kafka's topic configuration reference (4.x); DESIGN 6 for `durability`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from quorumlog.errors import ApiError, ErrorCode

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
MAX_VALUE_CHARACTERS = 4_000  # per value; below the longest number that Python parses


class Kind(Enum):
    """How a value's text is parsed. The member's value is its name in error messages."""

    WHOLE = "a whole number"
    FRACTION = "a decimal number"
    BOOLEAN = "true or false"
    CHOICE = "one of the listed words"
    CHOICES = "a comma-separated list of the listed words"


# int() and float() alone would accept underscores, digits of other scripts, inf and nan
_NUMBER = {Kind.WHOLE: re.compile(r"[+-]?[0-9]+"), Kind.FRACTION: re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One setting. `minimum` and `maximum` are inclusive and apply to numbers only; `choices` apply to words only."""

    name: str
    kind: Kind
    default: str
    minimum: float = 0
    maximum: float = MAX_LONG
    choices: tuple[str, ...] = ()
    doc: str


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
        doc="What happens to old segments: deleted by age and size, compacted by key, or both.",
    ),
    _choice(
        "compression.type",
        "producer",
        ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "Codec of stored batches; `producer` keeps what the producer sent.",
    ),
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
    _boolean("preallocate", False, "Reserve a new segment's whole size at once."),
    _whole("retention.bytes", -1, -1, MAX_LONG, "Partition size above which old segments are deleted; -1: no limit."),
    _whole("retention.ms", 604_800_000, -1, MAX_LONG, "Age at which a segment is deleted; -1: never."),
    _whole("segment.bytes", 1_073_741_824, 1_048_576, MAX_INT, "Size at which a segment is closed."),
    _whole("segment.index.bytes", 10_485_760, 4, MAX_INT, "Largest size of one index file."),
    _whole("segment.jitter.ms", 0, 0, MAX_LONG, "Largest random time subtracted from `segment.ms`, to spread rolls."),
    _whole("segment.ms", 604_800_000, 1, MAX_LONG, "Age at which a segment is closed even if it is not full."),
    _boolean("unclean.leader.election.enable", False, "Allow a leader that may lack acknowledged records."),
)

TOPIC_CONFIGS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}


def validate(name: str, value: str) -> None:
    """Raise ApiError(INVALID_CONFIG) unless a topic may have `name` set to `value`."""
    _parse(_key(name), value)


def validate_all(values: Mapping[str, str]) -> None:
    """Check each entry, then the entries against each other. Raises ApiError(INVALID_CONFIG)."""
    for name in sorted(values):
        validate(name, values[name])
    low, high = (_parsed(name, values) for name in ("min.compaction.lag.ms", "max.compaction.lag.ms"))
    if low > high:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"min.compaction.lag.ms={low} is above max.compaction.lag.ms={high}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """A topic's settings, parsed. Times in ms, sizes in bytes; -1 in `retention_*`: no limit."""

    cleanup_policy: tuple[str, ...]  # sorted
    compression_type: str
    delete_retention_ms: int
    durability: str  # synced | replicated
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    index_interval_bytes: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str  # CreateTime | LogAppendTime
    min_insync_replicas: int
    preallocate: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

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
        small = int(_parsed("internal.segment.bytes", values))
        return TopicConfig(
            cleanup_policy=tuple(sorted(_words(_text("cleanup.policy", values)))),
            compression_type=_text("compression.type", values),
            delete_retention_ms=int(_parsed("delete.retention.ms", values)),
            durability=_text("durability", values),
            file_delete_delay_ms=int(_parsed("file.delete.delay.ms", values)),
            flush_messages=int(_parsed("flush.messages", values)),
            flush_ms=int(_parsed("flush.ms", values)),
            index_interval_bytes=int(_parsed("index.interval.bytes", values)),
            max_message_bytes=int(_parsed("max.message.bytes", values)),
            message_timestamp_after_max_ms=int(_parsed("message.timestamp.after.max.ms", values)),
            message_timestamp_before_max_ms=int(_parsed("message.timestamp.before.max.ms", values)),
            message_timestamp_type=_text("message.timestamp.type", values),
            min_insync_replicas=int(_parsed("min.insync.replicas", values)),
            preallocate=bool(_parsed("preallocate", values)),
            retention_bytes=int(_parsed("retention.bytes", values)),
            retention_ms=int(_parsed("retention.ms", values)),
            segment_bytes=small or int(_parsed("segment.bytes", values)),
            segment_index_bytes=int(_parsed("segment.index.bytes", values)),
            segment_jitter_ms=int(_parsed("segment.jitter.ms", values)),
            segment_ms=int(_parsed("segment.ms", values)),
            unclean_leader_election_enable=bool(_parsed("unclean.leader.election.enable", values)),
        )


def _key(name: str) -> ConfigKey:
    if name in TOPIC_CONFIGS:
        return TOPIC_CONFIGS[name]
    nearest = difflib.get_close_matches(name, TOPIC_CONFIGS, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    raise ApiError(ErrorCode.INVALID_CONFIG, f"unknown topic config {name}{hint}")


def _text(name: str, values: Mapping[str, str]) -> str:
    text = values.get(name, TOPIC_CONFIGS[name].default)
    _parse(TOPIC_CONFIGS[name], text)
    return text


def _parsed(name: str, values: Mapping[str, str]) -> int | float:
    return _parse(TOPIC_CONFIGS[name], values.get(name, TOPIC_CONFIGS[name].default))


def _parse(key: ConfigKey, text: str) -> int | float:
    """A number as itself, a boolean as 0 or 1, words as 0. Raises ApiError(INVALID_CONFIG)."""
    if len(text) > MAX_VALUE_CHARACTERS:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{key.name}: {len(text)} characters, limit {MAX_VALUE_CHARACTERS}")
    match key.kind:
        case Kind.WHOLE | Kind.FRACTION:
            return _number(key, text)
        case Kind.BOOLEAN:
            if text.strip().lower() not in ("true", "false"):
                raise _bad(key, text)
            return text.strip().lower() == "true"
        case Kind.CHOICE:
            if text not in key.choices:
                raise _bad(key, text)
        case Kind.CHOICES:
            words = _words(text)
            if not words or any(word not in key.choices for word in words):
                raise _bad(key, text)
    return 0


def _number(key: ConfigKey, text: str) -> int | float:
    if not _NUMBER[key.kind].fullmatch(text.strip()):
        raise _bad(key, text)
    number = int(text) if key.kind is Kind.WHOLE else float(text)
    if not key.minimum <= number <= key.maximum:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{key.name}={text}: must be between {key.minimum} and {key.maximum}, inclusive"
        )
    return number


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _bad(key: ConfigKey, text: str) -> ApiError:
    choices = f" ({', '.join(key.choices)})" if key.choices else ""
    return ApiError(ErrorCode.INVALID_CONFIG, f"{key.name}={text!r}: must be {key.kind.value}{choices}")
