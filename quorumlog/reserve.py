"""The free-space reserve of a log directory, `log.dir.free.space.reserve.bytes` (decision 0019)."""

from __future__ import annotations

RESERVE_MAX_BYTES = 1 << 30
RESERVE_PERCENT = 5


def reserve_bytes(total_bytes: int, setting: int | None) -> int:
    """total_bytes: of the file system. setting: None for the rule; 0: no reserve."""
    return min(RESERVE_MAX_BYTES, total_bytes * RESERVE_PERCENT // 100) if setting is None else setting
