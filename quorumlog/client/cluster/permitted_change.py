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
    """The results, in the order of the first answer: Kafka's has what it denies at the end, and a name that is there
    twice once. request: with `topics`; already: as of `RetriedChange`, which says what it raises."""
    deadline_ms = link.clock.now_ms() + link.options.default_api_timeout_ms
    by_id = any(getattr(topic, "topic_id", b"") for topic in request.topics)
    results: list[Any] = []
    asked = request
    while True:
        response = await RetriedChange(link, asked, already).carry_out()
        found = _results(response)
        newest = {_key(one, by_id): one for one in found}
        results = [newest.get(_key(one, by_id), one) for one in results] if results else list(found)
        refused = {_key(one, by_id) for one in found if one.error_code == _REFUSED}
        wait_ms = max(response.throttle_time_ms, link.options.retry_backoff_ms)  # some brokers name no time
        if not (refused and retry_on_quota_violation) or link.clock.now_ms() + wait_ms > deadline_ms:
            return results
        asked = replace(request, topics=tuple(topic for topic in request.topics if _key(topic, by_id) in refused))
        await asyncio.sleep(wait_ms / 1000)


_REFUSED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def _key(one: Any, by_id: bool) -> Any:
    """Of a topic that is asked for, and of its result."""
    return one.topic_id if by_id else one.name


def _results(response: Any) -> tuple[Any, ...]:
    found: tuple[Any, ...] = response.topics if hasattr(response, "topics") else response.results
    return found
