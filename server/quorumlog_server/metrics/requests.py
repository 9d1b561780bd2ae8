"""How this node answers requests, and whether its loop keeps up."""

from __future__ import annotations

from typing import Final

from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series

LONGEST_STALL = Series(
    "loop_stall_longest_seconds", Kind.GAUGE, "seconds", (), "For how long was the event loop held up at most?"
)

SERIES: Final = (LONGEST_STALL,)


def collect(source: Source, out: Reading) -> None:
    out.add(LONGEST_STALL, source.watchdog.max_stall_ms / 1000)
