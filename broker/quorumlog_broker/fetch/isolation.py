"""The isolation of a reader, by what it is and what it asks for: decided here only (Kafka's FetchIsolation).

`quorumlog_storage/rules/isolation.py` turns the isolation into an offset.
"""

from __future__ import annotations

from quorumlog_storage.rules.isolation import Isolation

READ_UNCOMMITTED, READ_COMMITTED = 0, 1  # isolation levels on the wire
ISOLATION_LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)


def isolation_of(isolation_level: int, *, is_replica: bool) -> Isolation:
    """isolation_level: as in the request; a follower's does not matter, since it copies all that is written."""
    if is_replica:
        return Isolation.LOG_END
    return Isolation.LAST_STABLE_OFFSET if isolation_level == READ_COMMITTED else Isolation.HIGH_WATERMARK
