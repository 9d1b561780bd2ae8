"""Topic names: which are legal, and which brokers keep for themselves.

A topic's name becomes a directory name, so the rule is Kafka's: 1 to 249 of `[a-zA-Z0-9._-]`, not `.` or
`..`. One name is taken: the directory of a topic `__cluster_metadata` would be the one of the quorum's own log. Two
names that differ only in `.` and `_` collide, because metric names replace both by the same character.
"""

from __future__ import annotations

import re

from quorumlog.errors import ApiError, ErrorCode

METADATA_TOPIC = "__cluster_metadata"  # of the quorum's own log, which may lie beside the partitions
MAX_NAME_CHARACTERS = 249  # a file name with "-<partition>" and ".<id>-delete" appended has at most 255 bytes

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def validate_topic_name(name: str) -> None:
    """Raise ApiError(INVALID_TOPIC_EXCEPTION) unless `name` is a legal topic name."""
    if _LEGAL.fullmatch(name) and name not in (".", "..", METADATA_TOPIC):
        return
    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic name {name[:260]!r}: {_reason(name)}")


def collision_key(name: str) -> str:
    """Equal for two names that collide."""
    return name.replace(".", "_")


def _reason(name: str) -> str:
    if not name:
        return "is empty"
    if name in (".", ".."):
        return "is reserved for directories"
    if name == METADATA_TOPIC:
        return "is reserved for the cluster's own log"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"has {len(name)} characters, limit {MAX_NAME_CHARACTERS}"
    return "only ASCII letters, digits, '.', '_' and '-' are allowed"


CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"

INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})


def is_internal(topic: str) -> bool:
    """Clients see it marked so, and may neither produce to it nor delete its records."""
    return topic in INTERNAL_TOPICS
