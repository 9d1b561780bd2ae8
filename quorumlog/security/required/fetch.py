"""Fetch and FetchChunks: Read on each topic, asked before the read and once more when its answer is made.

A long poll may end after a rule was changed, so nothing is sent that the rules of that moment deny. A session
(KIP-227) reads topics that its requests do not name: it is remembered here who began it, and what it reads. After a
change of the rules those topics are judged again, and a session that has lost one ends (FETCH_SESSION_ID_NOT_FOUND).
Its client begins anew, and is then told topic by topic. A request with a denied topic gets no session, so that
the denial is told each time, as by Kafka. A topic whose id is not known denies nothing yet: it stays in the session,
and since it may become known at any time, each answer of that session is judged once more.

A beginning of chunks that is denied is carried out all the same, since the stream has to leave its former place, but
without waiting; its answer is replaced.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import (
    FetchChunkRequest,
    FetchChunkResponse,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResponse,
)
from quorumlog.security.principal import Principal
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.judged import Judged, keep_topics
from quorumlog.security.required.need import TOPIC_READ
from quorumlog.topic_name import MAX_NAME_CHARACTERS

MAX_SESSIONS = 10_000  # that are remembered; the one that was used least recently is ended
MAX_TOPICS_OF_SESSION = 100_000  # also those that it has given up; a session with more ends
MAX_TOPICS = 500_000  # of all sessions; as many as a broker keeps partitions of sessions
NO_SESSION = 0
WITHOUT_SESSION = -1  # the epoch of a fetch that neither begins nor uses a session


@dataclass(slots=True)
class _Session:
    """topics: names and ids, as the client has named them; also those that it has given up since. has_unknown: an id
    among them was not known when it came."""

    principal: Principal
    host: str
    generation: int
    topics: set[tuple[str, bytes]]
    has_unknown: bool


class _Named:
    """A topic of a session, as `Asker.topic_fault` takes it."""

    __slots__ = ("name", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name, self.topic_id = name, topic_id


class FetchSessionRights:
    """Of one broker. Bounded by MAX_SESSIONS and MAX_TOPICS."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[int, _Session] = OrderedDict()
        self.topics = 0  # of all sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def begun(
        self, ask: Asker, session_id: int, generation: int, topics: Iterable[FetchTopic], has_unknown: bool = False
    ) -> None:
        """generation: of the rules by which the topics were allowed. has_unknown: an id among them is not known."""
        named = set(map(_named, topics))
        self.end(session_id)
        self._sessions[session_id] = _Session(ask.principal, ask.host, generation, named, has_unknown)
        self.topics += len(named)
        self._make_room()

    def _make_room(self) -> None:
        while len(self._sessions) > MAX_SESSIONS or self.topics > MAX_TOPICS:
            self.end(next(iter(self._sessions)))

    def is_of_another(self, ask: Asker, session_id: int) -> bool:
        session = self._sessions.get(session_id)
        return session is not None and (session.principal, session.host) != (ask.principal, ask.host)

    def check(self, ask: Asker, request: FetchRequest) -> None:
        """Raises ApiError(FETCH_SESSION_ID_NOT_FOUND): the session is another client's, or has lost a topic."""
        session = self._sessions.get(request.session_id)
        if session is None or self.is_of_another(ask, request.session_id):
            raise _ended(request)
        generation = ask.rules.generation
        if session.generation != generation:
            if any(_denies(ask.topic_fault(TOPIC_READ, _Named(*named))) for named in session.topics):
                self.end(request.session_id)
                raise _ended(request)
            session.generation = generation
        self._sessions.move_to_end(request.session_id)

    def has_unknown(self, session_id: int) -> bool:
        session = self._sessions.get(session_id)
        return session is not None and session.has_unknown

    def named(self, request: FetchRequest, has_unknown: bool = False) -> None:
        """Topics that were not denied join the session."""
        session = self._sessions.get(request.session_id)
        if session is not None and request.topics:
            session.has_unknown |= has_unknown
            before = len(session.topics)
            session.topics.update(map(_named, request.topics))
            self.topics += len(session.topics) - before
            if len(session.topics) > MAX_TOPICS_OF_SESSION:
                self.end(request.session_id)
            self._make_room()

    def end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.topics -= len(session.topics)


def _named(topic: FetchTopic) -> tuple[str, bytes]:
    """A name that no topic can have is kept as far as it takes to see that: a client may make it very long."""
    return topic.name[: MAX_NAME_CHARACTERS + 1], topic.topic_id


def _denies(fault: ErrorCode) -> bool:
    return fault not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID)


def _ended(request: FetchRequest) -> ApiError:
    text = f"session {request.session_id}: fetch without it, then begin another one"
    return ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, text)


def judge_fetch(sessions: FetchSessionRights, ask: Asker, request: FetchRequest) -> Judged:
    generation = ask.rules.generation
    is_incremental = request.session_epoch > 0
    if is_incremental:
        sessions.check(ask, request)
    elif sessions.is_of_another(ask, request.session_id):
        request = replace(request, session_id=NO_SESSION)  # nobody ends the session of another client
    else:
        sessions.end(request.session_id)
    faults = [] if ask.may_all(TOPIC_READ, request.topics) else [ask.topic_fault(TOPIC_READ, t) for t in request.topics]
    if any(map(_denies, faults)):
        if is_incremental:
            sessions.end(request.session_id)
            raise _ended(request)
        return _in_part(ask, request, faults)
    has_unknown = any(faults)
    if is_incremental:
        sessions.named(request, has_unknown)
        has_unknown = sessions.has_unknown(request.session_id)

    def finish(response: FetchResponse) -> FetchResponse:
        if response.session_id != NO_SESSION and not is_incremental:
            sessions.begun(ask, response.session_id, generation, request.topics, has_unknown)
        return judged_again(ask, response) if has_unknown or ask.rules.generation != generation else response

    return Judged(request, finish)


def _in_part(ask: Asker, request: FetchRequest, faults: list[ErrorCode]) -> Judged:
    """Of a request with a denied topic: the others are fetched, without a session."""
    generation = ask.rules.generation
    judged = keep_topics(replace(request, session_epoch=WITHOUT_SESSION), faults, FetchResponse, _denied)
    if judged.request is None:
        return judged
    put_back = judged.finish
    assert put_back is not None, "a topic is left out, so it is put back"

    def finish(response: FetchResponse) -> FetchResponse:
        if not response.topics:  # a client above its quota hears of none; some were asked for
            return response
        whole: FetchResponse = put_back(judged_again(ask, response) if ask.rules.generation != generation else response)
        return whole

    return Judged(judged.request, finish)


def judged_again(ask: Asker, response: FetchResponse) -> FetchResponse:
    """By the rules of now."""
    if ask.may_all(TOPIC_READ, response.topics):
        return response
    faults = [ask.topic_fault(TOPIC_READ, topic) for topic in response.topics]
    if not any(faults):
        return response
    topics = (_denied(topic, fault) if fault else topic for topic, fault in zip(response.topics, faults, strict=True))
    return replace(response, topics=tuple(topics))


def _denied(topic: Any, fault: ErrorCode) -> FetchTopicResponse:
    partitions = tuple(FetchPartitionResponse(index=one.index, error_code=fault) for one in topic.partitions)
    return FetchTopicResponse(topic_id=topic.topic_id, name=topic.name, partitions=partitions)


def fetch_chunk(ask: Asker, request: FetchChunkRequest) -> Judged:
    fetch = request.fetch
    if fetch is not None and fetch.topics and any(ask.topic_fault(TOPIC_READ, topic) for topic in fetch.topics):
        request = replace(request, fetch=replace(fetch, max_wait_ms=0))

    def finish(response: FetchChunkResponse) -> FetchChunkResponse:
        if response.fetch is None:
            return response
        again = judged_again(ask, response.fetch)
        return response if again is response.fetch else FetchChunkResponse(fetch=_only_topics(again))

    return Judged(request, finish)


def _only_topics(fetch: FetchResponse) -> FetchResponse:
    """Without what the answer of a topic that is there would tell beside it."""
    return FetchResponse(topics=fetch.topics)
