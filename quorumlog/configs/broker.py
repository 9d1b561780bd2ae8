"""Settings that can be changed while brokers run: defaults of topics, and a few of the broker itself.

A broker sets the defaults of topics by Kafka's `log.*` names or by the topics' own names.

They are set in a broker's file, or changed while brokers run (a `broker` resource of IncrementalAlterConfigs: a
broker's id, or the empty name for all brokers). The metadata log stores them under the topics' names only.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from quorumlog.configs.cleaner import CLEANER_SETTINGS
from quorumlog.configs.directory import DIRECTORY_SETTINGS
from quorumlog.configs.live import IDLE, IN_FORCE, ListenersToo
from quorumlog.configs.rolls import ROLL_SETTINGS
from quorumlog.configs.throttle import THROTTLE_SETTINGS
from quorumlog.configs.topic import TOPIC_CONFIGS
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.settings.config_key import ConfigKey

TOPIC_SYNONYMS: Mapping[str, str] = {
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "compression.type": "compression.type",
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.cleanup.policy": "cleanup.policy",
    "log.durability": "durability",  # not in Kafka
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "log.index.interval.bytes": "index.interval.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.preallocate": "preallocate",
    "log.retention.bytes": "retention.bytes",
    "log.retention.ms": "retention.ms",
    "log.roll.jitter.ms": "segment.jitter.ms",
    "log.roll.ms": "segment.ms",
    "log.segment.bytes": "segment.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "message.max.bytes": "max.message.bytes",
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "unclean.recovery.strategy": "unclean.recovery.strategy",
}

BROKER_NAMES: Mapping[str, str] = {topic_name: name for name, topic_name in TOPIC_SYNONYMS.items()}

DECIDED_TOGETHER: frozenset[str] = frozenset(
    {"durability", "min.insync.replicas", "unclean.leader.election.enable", "unclean.recovery.strategy"}
)
"""Topic settings by which the controller elects and brokers commit. Both take them from the metadata alone: of the
topic or of all brokers, never of one broker or of its file. The first controller of a cluster writes what its file has
of them (decisions 85 and 114)."""


def of_one_broker(values: Mapping[str, str]) -> dict[str, str]:
    """What counts of the settings of one broker or of its file. values: by the names that are stored."""
    return {name: value for name, value in values.items() if name not in DECIDED_TOGETHER}


PER_BROKER: frozenset[str] = frozenset(DIRECTORY_SETTINGS)  # of one broker, never of all brokers
OF_ALL_BROKERS: frozenset[str] = frozenset(ROLL_SETTINGS)  # never of one broker
CHANGEABLE: Mapping[str, ConfigKey] = ListenersToo(
    {**CLEANER_SETTINGS, **DIRECTORY_SETTINGS, **THROTTLE_SETTINGS, **ROLL_SETTINGS, **IN_FORCE, **IDLE}
)  # of the broker itself
BROKER_CONFIGS: Mapping[str, ConfigKey] = ListenersToo({**TOPIC_CONFIGS, **CHANGEABLE})  # by the names that are stored


def stored_name_of(name: str) -> str:
    """The name under which a broker setting is stored that is given by either name. Raises ApiError(INVALID_CONFIG)."""
    stored = TOPIC_SYNONYMS.get(name, name)
    if stored in BROKER_CONFIGS:
        return stored
    nearest = difflib.get_close_matches(name, sorted({*TOPIC_SYNONYMS, *BROKER_CONFIGS}), n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} is not a setting that can be changed while brokers run{hint}")
