"""Limits of single requests, and of the fetch sessions that they begin."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.settings.key import number, setting, size

SLOW_REQUEST = "slow.request.ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerLimits:
    """A longer wait or a larger response is cut to the limit; anything else is refused."""

    max_topics_per_request: int = 10_000
    max_wait_ms: int = 300_000
    max_fetch_bytes: int = setting(size("fetch.max.bytes", 55 << 20, 1_024, "Largest response to any fetch."))
    max_auto_created_topics: int = 100  # of one metadata request
    max_described_ranges: int = 10_000  # of one answer of DescribeRanges
    slow_request_ms: int = setting(
        number(
            SLOW_REQUEST,
            500,
            1,
            "A request that takes so long has a line in the log, with its parts; at most 10 lines a second. What it is "
            "willing to wait for, as a fetch is, does not count. Not in Kafka.",
        )
    )
    max_counted_headers: int = 100_000  # of batches, that one answer of CountRecords reads: half a second, in slices
    fetch_session_slots: int = setting(
        number("max.incremental.fetch.session.cache.slots", 1_000, 0, "Fetch sessions that a broker keeps.")
    )
    fetch_session_partitions: int = 500_000  # of all sessions together: 160 to 380 MB
