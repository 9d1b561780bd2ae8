"""Names under which a broker sets the defaults of topics: Kafka's `log.*` names and the topics' own names.

They are set in a broker's file, or changed while brokers run (a `broker` resource of IncrementalAlterConfigs: a
broker's id, or the empty name for all brokers). The metadata log stores them under the topics' names only.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.topic_config import TOPIC_CONFIGS

TOPIC_SYNONYMS: Mapping[str, str] = {
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
}

BROKER_NAMES: Mapping[str, str] = {topic_name: name for name, topic_name in TOPIC_SYNONYMS.items()}


def topic_name_of(name: str) -> str:
    """The topic setting for a broker setting that is given by either name. Raises ApiError(INVALID_CONFIG)."""
    topic_name = TOPIC_SYNONYMS.get(name, name)
    if topic_name in TOPIC_CONFIGS:
        return topic_name
    nearest = difflib.get_close_matches(name, sorted({*TOPIC_SYNONYMS, *TOPIC_CONFIGS}), n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} is not a setting that can be changed while brokers run{hint}")
