"""How far a reader may read the log of a partition: the one place that turns reader and isolation level into an offset.

A follower copies everything that is written; a consumer sees what is committed; a consumer with `read_committed` sees
what is committed and belongs to no open transaction. Source: Kafka's FetchIsolation.
"""

from __future__ import annotations

from enum import Enum, auto

from broker.partition.partition import Partition
from quorumlog.ids import Offset

READ_UNCOMMITTED, READ_COMMITTED = 0, 1  # isolation levels on the wire
ISOLATION_LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)


class Isolation(Enum):
    LOG_END = auto()
    HIGH_WATERMARK = auto()
    LAST_STABLE_OFFSET = auto()


def isolation_of(isolation_level: int, *, is_replica: bool) -> Isolation:
    """isolation_level: as in the request; a follower's does not matter."""
    if is_replica:
        return Isolation.LOG_END
    return Isolation.LAST_STABLE_OFFSET if isolation_level == READ_COMMITTED else Isolation.HIGH_WATERMARK


def upper_bound(isolation: Isolation, core: Partition) -> Offset:
    """Exclusive: the reader sees no batch with a record at or after it."""
    if isolation is Isolation.LOG_END:
        return core.end_offset
    return core.high_watermark if isolation is Isolation.HIGH_WATERMARK else last_stable_offset(core)


def last_stable_offset(core: Partition) -> Offset:
    """Exclusive end of what is committed and belongs to no open transaction. There are no transactions yet."""
    return core.high_watermark
