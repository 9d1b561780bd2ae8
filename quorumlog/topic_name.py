"""Which names a topic may have.

Names become directory names (FORMATS), so the rule is Kafka's: 1 to 249 of `[a-zA-Z0-9._-]`, not `.` or `..`. Two
names that differ only in `.` and `_` collide, because metric names fold both into one.
"""

from __future__ import annotations

import re

from quorumlog.errors import ApiError, ErrorCode

MAX_NAME_CHARACTERS = 249  # with "-<partition>" and ".<id>-delete" appended a file name still has at most 255 bytes

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def validate_topic_name(name: str) -> None:
    """Raise ApiError(INVALID_TOPIC_EXCEPTION) unless `name` is a legal topic name."""
    if _LEGAL.fullmatch(name) and name not in (".", ".."):
        return
    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic name {name[:260]!r}: {_reason(name)}")


def collision_key(name: str) -> str:
    """Equal for two names that must not both exist."""
    return name.replace(".", "_")


def _reason(name: str) -> str:
    if not name:
        return "is empty"
    if name in (".", ".."):
        return "is a directory's own name"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"has {len(name)} characters, limit {MAX_NAME_CHARACTERS}"
    return "only ASCII letters, digits, '.', '_' and '-' are allowed"
