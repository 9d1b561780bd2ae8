"""A change of the cluster, sent until somebody says what became of it.

A try whose answer is lost may have been carried out, and the next one then finds its own work: a topic that exists
already, or exists no more. That is success, which Kafka's own clients report as an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorumlog.client.errors import RequestFailed
from quorumlog.client.link import Link, check
from quorumlog.errors import ErrorCode

AGAIN = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)


class Change:
    """already: what a topic answers where this was done before; NONE: such an answer stays an error."""

    def __init__(self, link: Link, request: Any, already: ErrorCode = ErrorCode.NONE) -> None:
        self._link, self._request, self._already = link, request, already
        self._in_doubt = False  # an earlier try may have been carried out

    async def carry_out(self) -> Any:
        """The answer, errors of topics or resources in it. Raises RequestFailed for one of the whole, Unavailable."""
        return await self._link.until(self._ask, self._link.options.default_api_timeout_ms)

    async def _ask(self) -> Any:
        """Any broker, which forwards it. Raises RequestFailed also for what is to be tried again."""
        response = await self._link.call_any(self._request, self._link.options.request_timeout_ms, self._doubt)
        parts = response.topics if hasattr(response, "topics") else response.results
        again = next((part for part in (response, *parts) if part.error_code in AGAIN), None)
        if again is not None:
            if again.error_code == ErrorCode.REQUEST_TIMED_OUT:
                self._doubt()
            raise RequestFailed(ErrorCode(again.error_code), again.error_message)
        check(response)
        return self._settled(response) if self._in_doubt and self._already else response

    def _doubt(self) -> None:
        self._in_doubt = True

    def _settled(self, response: Any) -> Any:
        topics = (
            replace(topic, error_code=ErrorCode.NONE, error_message="") if topic.error_code == self._already else topic
            for topic in response.topics
        )
        return replace(response, topics=tuple(topics))
