"""Interceptors (KIP-42): see what a client sends and reads. One that raises is logged, and changes nothing.

They are asked in the order in which they were given, each with what the one before it returned. An interceptor needs
only those of the methods that it wants.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorumlog.client.batches.record_parts import HeadersLike

_log = logging.getLogger(__name__)
# An application's function waits for nothing, so that it was cancelled is an error of its own, such as `result()` of a
# future that was cancelled: passed on, it would end the task of the client that has called it.
FAILED = (Exception, asyncio.CancelledError)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRecord:
    """A record as the application has sent it, before its serializers. partition: None: the producer chooses."""

    topic: str
    value: Any
    key: Any = None
    headers: HeadersLike | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


class ProducerInterceptor:
    """A base for interceptors of a producer; each method does nothing."""

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        """In `send`, in the thread that calls it. Returns the record that is sent instead."""
        return record

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        """metadata: RecordMetadata; with an error its offset is -1, and the partition too if none was chosen.

        On the client's event loop, before `on_delivery`, in the order of the partition. Keep it short.
        """


class ConsumerInterceptor:
    """A base for interceptors of a consumer; each method does nothing."""

    def on_consume(self, records: list[Any]) -> list[Any]:
        """What a poll is about to return, in the thread that polls. Returns what it returns instead.

        What is left out counts as read.
        """
        return records

    def on_commit(self, offsets: Mapping[Any, Any]) -> None:
        """After offsets were committed, automatic commits included; on the client's event loop. Keep it short."""


def passed_through(interceptors: Sequence[Any], method: str, given: Any) -> Any:
    """What the last interceptor returns; one that raises, or returns None, is passed over."""
    for interceptor in interceptors:
        call: Callable[[Any], Any] | None = getattr(interceptor, method, None)
        if call is not None:
            try:
                returned = call(given)
            except FAILED:  # an observer must not break what it observes (KIP-42)
                _log.exception("an interceptor's %s failed; it is passed over", method)
                continue
            if returned is None:
                _log.error("an interceptor's %s returned nothing; it is passed over", method)
            else:
                given = returned
    return given


def told(interceptors: Sequence[Any], method: str, *given: Any) -> None:
    for interceptor in interceptors:
        call: Callable[..., None] | None = getattr(interceptor, method, None)
        if call is not None:
            try:
                call(*given)
            except FAILED:
                _log.exception("an interceptor's %s failed; it is passed over", method)
