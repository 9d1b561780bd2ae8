"""Sends a change of the cluster until its outcome is known.

A try whose answer is lost may have been carried out. The next try then finds its own work: a topic that exists already,
or no longer exists. That counts as success; Kafka's own clients report it as an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId

PARTS = ("topics", "results", "entries")  # of responses: what has errors of its own
AGAIN = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)


class RetriedChange:
    """already: the error of a topic on which this change was done before; NONE: such an error stays an error.
    first: a broker that is asked before the others; its address is known by now, or it is asked like the others.
    """

    def __init__(
        self, link: Link, request: Any, already: ErrorCode = ErrorCode.NONE, *, first: NodeId | None = None
    ) -> None:
        self._link, self._request, self._already, self._first = link, request, already, first
        self.in_doubt = False  # an earlier try may have been carried out

    async def carry_out(self) -> Any:
        """Returns the response, with the errors of its topics or resources. Raises RequestFailed for an error of the
        whole response, and Unavailable."""
        return await self._link.until(self._ask, self._link.options.default_api_timeout_ms)

    async def _ask(self) -> Any:
        """Ask any broker, which forwards it to the controller. Raises RequestFailed also for a retriable error."""
        timeout_ms = self._link.options.request_timeout_ms
        response = await self._link.call_any(self._request, timeout_ms, self._doubt, first=self._first)
        parts = next(getattr(response, name) for name in PARTS if hasattr(response, name))
        again = next((part for part in (response, *parts) if part.error_code in AGAIN), None)
        if again is not None:
            if again.error_code == ErrorCode.REQUEST_TIMED_OUT:
                self._doubt()
            raise RequestFailed(ErrorCode(again.error_code), again.error_message)
        check(response)
        return self._settled(response) if self.in_doubt and self._already else response

    def _doubt(self) -> None:
        self.in_doubt = True

    def _settled(self, response: Any) -> Any:
        topics = (
            replace(topic, error_code=ErrorCode.NONE, error_message="") if topic.error_code == self._already else topic
            for topic in response.topics
        )
        return replace(response, topics=tuple(topics))
