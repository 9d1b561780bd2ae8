"""A change of topics by a client with a quota of such changes (KIP-599).

What the cluster refuses because the quota is used up is asked for again once it says so, alone, as Java's admin client
does (`retryOnQuotaViolation`); in the end the refusal is the result.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from quorumlog.client.cluster.link import Link
from quorumlog.client.cluster.retried_change import RetriedChange
from quorumlog.errors import ErrorCode


async def permitted_change(
    link: Link, request: Any, already: ErrorCode = ErrorCode.NONE, *, retry_on_quota_violation: bool = True
) -> list[Any]:
    """The result of each topic, in their order. request: with `topics`; already: as of `RetriedChange`, which says
    what it raises."""
    deadline_ms = link.clock.now_ms() + link.options.default_api_timeout_ms
    results: list[Any] = []
    places = list(range(len(request.topics)))  # of what is asked for
    while True:
        asked = replace(request, topics=tuple(request.topics[place] for place in places)) if results else request
        response = await RetriedChange(link, asked, already).carry_out()
        found = _results(response)
        if not results:
            results = list(found)
        for place, result in zip(places, found, strict=True):
            results[place] = result
        places = [place for place, one in zip(places, found, strict=True) if one.error_code == _REFUSED]
        wait_ms = max(response.throttle_time_ms, link.options.retry_backoff_ms)  # some brokers name no time
        if not (places and retry_on_quota_violation) or link.clock.now_ms() + wait_ms > deadline_ms:
            return results
        await asyncio.sleep(wait_ms / 1000)


_REFUSED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def _results(response: Any) -> tuple[Any, ...]:
    found: tuple[Any, ...] = response.topics if hasattr(response, "topics") else response.results
    return found
