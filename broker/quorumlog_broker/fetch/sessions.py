"""All incremental fetch sessions of a broker (Kafka's FetchManager): which session a request belongs to, and what the
request does to it. Pure.

The table of KIP-227, by (session id, session epoch) of the request:

    any, -1     no session; the named one ends
    any, 0      the named one ends; a new session begins with the response, if there is room
    id, epoch   the next request of a session: it asks for the session's partitions, with the request's changes

If there is no room (`session_cache.py`), a new session does not begin, and a session that would have to grow ends, as
if it had been evicted: its reader then names all its partitions with each request. The session of a reader that
disappeared must not stay for ever, since each event of a partition costs something for every session that holds it. So
a session that was not used for IDLE_MS ends with the next fetch of any reader.

A follower's session belongs to one broker epoch. A request from another epoch does not find it, so that the follower
names, and acknowledges, every partition again (KIP-903).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, ReplicaState
from quorumlog.settings.requests import HandlerLimits
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.session import FINAL_EPOCH, FULL_EPOCH, MAX_PARTITIONS, NO_SESSION, FetchSession, next_epoch
from quorumlog_broker.fetch.session_cache import EVICT_MS, FetchSessionCache
from quorumlog_broker.fetch.targets import Key, TopicResponse, forgotten_of, is_too_long, targets_of

if TYPE_CHECKING:
    from random import Random

MAX_SESSION_ID = 2**31 - 1
_LIMITS = HandlerLimits()


class FetchSessions:
    def __init__(
        self,
        rng: Random,
        *,
        slots: int = _LIMITS.fetch_session_slots,
        max_partitions: int = _LIMITS.fetch_session_partitions,
        evict_ms: int = EVICT_MS,
    ) -> None:
        self._rng = rng
        self._cache = FetchSessionCache(slots, max_partitions, evict_ms)
        self._sessions: Mapping[int, FetchSession] = self._cache.sessions
        self._holders: dict[Key, dict[int, FetchSession]] = {}  # sessions by topic id: of each partition, by session id

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, now_ms: int) -> FetchContext:
        """Raises ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR,
        INVALID_REQUEST."""
        self._end_idle(now_ms)
        if request.session_epoch in (FULL_EPOCH, FINAL_EPOCH):
            return self._begin_full(request)
        session = self._update(request, now_ms)
        if not len(session):
            self._end_session(session)
            return FetchContext((), request.replica)
        session.epoch = next_epoch(session.epoch)
        self._cache.use(session, now_ms)
        if not session.by_id:
            return FetchContext(tuple(session.targets), request.replica, session=session, epoch=session.epoch)
        session.begin_read()
        if session.wake is not None:
            session.wake()  # the earlier request finds out that it was overtaken
        return FetchContext((), request.replica, session=session, epoch=session.epoch)

    def end(
        self,
        context: FetchContext,
        responses: Sequence[FetchPartitionResponse],
        has_more: Sequence[bool],
        now_ms: int,
    ) -> tuple[int, list[TopicResponse]]:
        """(session id, the responses to be sent). responses: one per target of the context, in their order.

        has_more: of each, whether there is more to read than the reader has. Raises ApiError, see `check_current`.
        """
        context.check_current()
        by_topic = [(target.topic, one) for target, one in zip(context.targets, responses, strict=True)]
        session = context.session
        if session is None:
            return self._new_session(context, by_topic, now_ms) if context.begins_session else NO_SESSION, by_topic
        if session.by_id:
            session.answer(by_topic, has_more)
        return session.id, session.update_responses(by_topic)

    # --- what happens to partitions ---

    def changed(self, key: tuple[Uuid, int]) -> None:
        """The response of this partition, or the meaning of a fetch of it, may be different now."""
        for session in self._holders.get(key, _NO_HOLDERS).values():
            session.changed(key)

    def wake(self, key: tuple[Uuid, int], *, of_replica: bool) -> None:
        """There is something new for followers (of_replica) or for consumers: wake their waiting requests."""
        for session in list(self._holders.get(key, _NO_HOLDERS).values()):
            if session.of_replica is of_replica:
                session.changed(key)
                if session.wake is not None:
                    session.wake()

    def unnamed_fetches(self) -> Iterator[tuple[tuple[Uuid, int], FetchPartition, ReplicaState, int]]:
        """Of followers' sessions: position, follower and time (ms) of each partition's last fetch by a request that did
        not name it."""
        for session in self._sessions.values():
            if session.replica is not None and session.by_id:
                for (topic, index), partition, at_ms in session.unnamed_fetches():
                    assert isinstance(topic, bytes)
                    yield (topic, index), partition, session.replica, at_ms

    # --- one session ---

    def _begin_full(self, request: FetchRequest) -> FetchContext:
        ended = self._own(request)
        self._end_session(ended)
        return FetchContext(
            tuple(targets_of(request)),
            request.replica,
            is_full=True,
            begins_session=request.session_epoch == FULL_EPOCH,
            ended_session=ended,
        )

    def _own(self, request: FetchRequest) -> FetchSession | None:
        """The session that the request names, if it belongs to the same reader."""
        session = self._sessions.get(request.session_id)
        return session if session is not None and session.replica == request.replica else None

    def _check(self, request: FetchRequest, topics: Iterable[object]) -> FetchSession:
        session = self._own(request)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id}")
        if session.epoch != request.session_epoch:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"session {session.id}: epoch {request.session_epoch}, expected {session.epoch}",
            )
        if any(isinstance(topic, bytes) != session.by_id for topic in topics):
            text = f"session {session.id} names topics by {'id' if session.by_id else 'name'}"
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, text)
        return session

    def _update(self, request: FetchRequest, now_ms: int) -> FetchSession:
        """The request's session, which has taken over its changes.

        Raises ApiError: FETCH_SESSION_ID_NOT_FOUND also if the session had to grow and was ended; any other error has
        changed nothing.
        """
        named, forgotten = targets_of(request), forgotten_of(request)
        session = self._check(request, [topic for topic, _ in (*named, *forgotten)])
        keys = [target.key for target in named]
        before = len(session)
        added = session.check_added(keys)
        if added and not self._make_room(added, before + added, session.of_replica, now_ms, grows=session):
            self._end_session(session)
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"session {session.id}: no room for {added} more")
        session.update(named, forgotten)
        self._cache.resized(len(session) - before)
        self._hold(session, keys)
        self._release(session, forgotten)
        return session

    def _end_session(self, session: FetchSession | None) -> None:
        if session is not None:
            self._cache.remove(session)
            self._release(session, session)
            session.epoch = FINAL_EPOCH  # a request that still waits finds out by it
            if session.wake is not None:
                session.wake()

    def _hold(self, session: FetchSession, keys: Iterable[Key]) -> None:
        if session.by_id:
            for key in keys:
                self._holders.setdefault(key, {})[session.id] = session

    def _release(self, session: FetchSession, keys: Iterable[Key]) -> None:
        for key in keys:
            holders = self._holders.get(key, _NO_HOLDERS)
            if holders.pop(session.id, None) is not None and not holders:
                del self._holders[key]

    # --- the cache ---

    def _new_session(self, context: FetchContext, responses: Sequence[TopicResponse], now_ms: int) -> int:
        """Its id; NO_SESSION if there is no room, or if the request names topics in both ways, or by names that no
        topic has."""
        targets = context.targets
        kinds = {isinstance(target.topic, bytes) for target in targets}
        if len(kinds) != 1 or len(targets) > MAX_PARTITIONS or any(is_too_long(target.key) for target in targets):
            return NO_SESSION
        if not self._make_room(len(targets), len(targets), context.replica is not None, now_ms):
            return NO_SESSION
        session = FetchSession(self._free_id(), True in kinds, context.replica, now_ms, now_ms)
        session.update(targets, ())
        session.update_responses(responses)
        self._cache.add(session)
        self._hold(session, session)
        return session.id

    def _make_room(
        self, added: int, size: int, of_replica: bool, now_ms: int, *, grows: FetchSession | None = None
    ) -> bool:
        """End sessions until there is room. False: there is none, and no session was ended."""
        victims = self._cache.victims(added, size, of_replica, now_ms, grows=grows)
        for victim in victims or ():
            self._end_session(victim)
        return victims is not None

    def _end_idle(self, now_ms: int) -> None:
        while session := self._cache.idle(now_ms):
            self._end_session(session)

    def _free_id(self) -> int:
        while True:
            session_id = self._rng.randrange(1, MAX_SESSION_ID + 1)
            if session_id not in self._sessions:
                return session_id

    def check_invariants(self) -> None:
        self._cache.check_invariants()
        for session in self._sessions.values():
            session.check_invariants()
        held = [key for session in self._sessions.values() if session.by_id for key in session]
        assert sorted(held) == sorted(key for key, holders in self._holders.items() for _ in holders)


_NO_HOLDERS: dict[int, FetchSession] = {}
