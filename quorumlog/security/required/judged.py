"""A request after the verdict: what its handler is given, and how the answer is made whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.need import Need


class Judged(NamedTuple):
    """request: for the handler; None: nothing of it is allowed, and `answer` is the response.
    finish: makes the handler's response that of the request; None: it is."""

    request: Any
    finish: Callable[[Any], Any] | None = None
    answer: Any = None


def answered(response: Any) -> Judged:
    return Judged(None, None, response)


DeniedTopic = Callable[[Any, ErrorCode], Any]  # (topic of the request, code) -> its place in the response


def split_topics(ask: Asker, need: Need, request: Any, response_type: type, denied: DeniedTopic) -> Judged:
    """For a request with `topics` whose response has one place for each of them, in the same order."""
    faults = [ask.topic_fault(need, topic) for topic in request.topics]
    return keep_topics(request, faults, response_type, denied)


def keep_topics(request: Any, faults: Sequence[ErrorCode], response_type: type, denied: DeniedTopic) -> Judged:
    """faults: of each topic; NONE: it is allowed."""
    if not any(faults):
        return Judged(request)
    kept = tuple(compress(request.topics, [not fault for fault in faults]))
    if not kept:
        topics = tuple(denied(topic, fault) for topic, fault in zip(request.topics, faults, strict=True))
        return answered(response_type(topics=topics))

    def finish(response: Any) -> Any:
        if response.error_code:
            return response
        return replace(response, topics=put_back(request.topics, faults, response.topics, denied))

    return Judged(replace(request, topics=kept), finish)


def put_back(asked: Sequence[Any], faults: Sequence[Any], found: Sequence[Any], denied: DeniedTopic) -> tuple[Any, ...]:
    """The answers to what was asked, in its order. found: of what was allowed, in the same order."""
    allowed = iter(found)
    return tuple(denied(one, fault) if fault else next(allowed) for one, fault in zip(asked, faults, strict=True))
