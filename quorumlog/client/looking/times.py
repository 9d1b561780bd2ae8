"""A time as people write it, of a record, an event or a line of a log: one syntax for every command and page. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from quorumlog.client.errors import ConfigError
from quorumlog.client.options import parse_duration_ms

HOW = "write ms since 1970, 2026-02-14T10:30:00Z (UTC without a zone), or how long ago: 90s, 15m, 2h, 3d, PT2H30M"
_UNIT_MS = {"s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO = re.compile(r"-?(\d{1,15})\s*(s|m|min|h|d)(\s+ago)?", re.ASCII)
_MS = re.compile(r"\d+", re.ASCII)
MAX_MS = 10**15 - 1


def read_time(text: str, now_ms: int) -> int:
    """In ms since 1970, which nothing precedes. Raises ValueError, whose text says how to write it (HOW)."""
    text = text.strip()
    if _MS.fullmatch(text) and len(text) <= len(str(MAX_MS)):
        return int(text)
    if ago := _AGO.fullmatch(text):
        return max(0, now_ms - int(ago[1]) * _UNIT_MS[ago[2]])
    try:
        if _MS.fullmatch(text):
            raise ValueError("too many ms")  # fromisoformat takes long rows of digits
        if text[:1] in ("P", "p"):
            return max(0, now_ms - parse_duration_ms(text.upper()))
        moment = datetime.fromisoformat(text)
        return max(0, round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000))
    except (ValueError, OverflowError, ConfigError) as error:
        raise ValueError(f"{text!r} is not a time; {HOW}") from error
