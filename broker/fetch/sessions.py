"""All incremental fetch sessions of a broker: which of them a request belongs to, and what happens to it by that.

The table of KIP-227, by (session id, session epoch) of the request:

    any, -1     no session; the one that is named ends
    any, 0      the one that is named ends; a new one begins with the answer, if there is room
    id, epoch   the next request of a session: what it asks for is the session's partitions with the request's changes

Where there is no room (`session_cache.py`) for a new session it does not begin, and one that would grow ends, as
if it had given way: its reader names all that it reads with each request. Who left without a word must not stay for
ever: every event of a partition is told to all sessions that hold it, so a session that was not used for `IDLE_MS` ends
with the next fetch of anybody. Pure.

A follower's session belongs to one broker epoch: in another epoch it is not found, so that every partition is named,
and acknowledged, anew (KIP-903).

Sessions by topic id are told what happens to their partitions, and a request of theirs looks at that alone. Those by
name, of clients before version 13, look at all they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.fetch.session import (
    FINAL_EPOCH,
    FULL_EPOCH,
    MAX_PARTITIONS,
    NO_SESSION,
    Answered,
    FetchSession,
    Key,
    Wanted,
    forgotten_of,
    next_epoch,
    wanted_of,
)
from broker.fetch.session_cache import EVICT_MS, MAX_PARTITIONS_DEFAULT, SLOTS_DEFAULT, FetchSessionCache
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, ReplicaState

if TYPE_CHECKING:
    from random import Random

MAX_SESSION_ID = 2**31 - 1


class FetchTurn(NamedTuple):
    """One request: what to look at.

    named: what it names, or all that a session by name holds. whole: exactly what the request names is answered.
    begins: the answer may begin a session. ended: the one that it names and that is over with it.
    """

    named: tuple[Wanted, ...]
    replica: ReplicaState | None
    whole: bool = False
    session: FetchSession | None = None
    epoch: int = FINAL_EPOCH  # of the session, after this request
    begins: bool = False
    ended: FetchSession | None = None

    @property
    def incremental(self) -> FetchSession | None:
        """The session, if it knows which of its partitions have to be looked at."""
        return self.session if self.session is not None and self.session.by_id else None

    @property
    def wanted(self) -> Sequence[Wanted]:
        """What is looked at, so far."""
        return self.named if self.incremental is None else self.incremental.looked_at()

    def check_current(self) -> None:
        """Raises ApiError(INVALID_FETCH_SESSION_EPOCH): the session goes on without this request."""
        if self.session is not None and self.session.epoch != self.epoch:
            text = f"session {self.session.id}: the next request, or the session's end, came before this answer"
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, text)


class FetchSessions:
    def __init__(
        self,
        rng: Random,
        *,
        slots: int = SLOTS_DEFAULT,
        max_partitions: int = MAX_PARTITIONS_DEFAULT,
        evict_ms: int = EVICT_MS,
    ) -> None:
        self._rng = rng
        self._cache = FetchSessionCache(slots, max_partitions, evict_ms)
        self._sessions: Mapping[int, FetchSession] = self._cache.sessions
        self._holders: dict[Key, dict[int, FetchSession]] = {}  # sessions by topic id, by what they hold and their id

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, now_ms: int) -> FetchTurn:
        """Raises ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR,
        INVALID_REQUEST."""
        self._end_idle(now_ms)
        if request.session_epoch in (FULL_EPOCH, FINAL_EPOCH):
            ended, begins = self._own(request), request.session_epoch == FULL_EPOCH
            self._end_session(ended)
            return FetchTurn(tuple(wanted_of(request)), request.replica, whole=True, begins=begins, ended=ended)
        named, forgotten = wanted_of(request), forgotten_of(request)
        session = self._next_of(request, named, forgotten)
        self._update(session, named, forgotten, now_ms)
        if not len(session):
            self._end_session(session)
            return FetchTurn((), request.replica)
        session.epoch = next_epoch(session.epoch)
        self._cache.use(session, now_ms)
        if not session.by_id:
            return FetchTurn(tuple(session.wanted()), request.replica, session=session, epoch=session.epoch)
        session.look()
        if session.wake is not None:
            session.wake()  # an older request finds that it has been overtaken
        return FetchTurn((), request.replica, session=session, epoch=session.epoch)

    def end(
        self,
        turn: FetchTurn,
        answers: Sequence[FetchPartitionResponse],
        now_ms: int,
        behind: Sequence[bool] | None = None,
    ) -> tuple[int, list[Answered]]:
        """(session id, what is told) for the answers to `turn.wanted`, one each, in their order. Raises ApiError.

        behind: of each answer of an incremental session, whether there was more to be read than the reader has.
        """
        turn.check_current()
        answered = [(topic, answer) for (topic, _), answer in zip(turn.wanted, answers, strict=True)]
        session = turn.session
        if session is None:
            return self._new_session(turn, answered, now_ms) if turn.begins else NO_SESSION, answered
        if session.by_id:
            assert behind is not None
            session.settle(answered, behind)
        return session.id, session.told(answered)

    # --- what happens to partitions ---

    def changed(self, key: tuple[Uuid, int]) -> None:
        """An answer about this partition may be another one than before, or a fetch from it mean something else."""
        for session in self._holders.get(key, _NOBODY).values():
            session.changed(key)

    def wake(self, key: tuple[Uuid, int], *, of_replica: bool) -> None:
        """There is something that followers, or else consumers, wait for."""
        for session in list(self._holders.get(key, _NOBODY).values()):
            if session.of_replica is of_replica:
                session.changed(key)
                if session.wake is not None:
                    session.wake()

    def heard(self) -> Iterator[tuple[tuple[Uuid, int], FetchPartition, ReplicaState, int]]:
        """Of followers' sessions: from where, and when, each settled partition was last fetched without being named."""
        for session in self._sessions.values():
            if session.replica is not None and session.by_id:
                for (topic, index), wanted, at_ms in session.heard():
                    assert isinstance(topic, bytes)
                    yield (topic, index), wanted, session.replica, at_ms

    # --- one session ---

    def _own(self, request: FetchRequest) -> FetchSession | None:
        """The session that the request names, if it is the asker's."""
        session = self._sessions.get(request.session_id)
        return session if session is not None and session.replica == request.replica else None

    def _next_of(self, request: FetchRequest, named: Sequence[Wanted], forgotten: Sequence[Key]) -> FetchSession:
        session = self._own(request)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id}")
        if session.epoch != request.session_epoch:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"session {session.id}: epoch {request.session_epoch}, expected {session.epoch}",
            )
        if any(isinstance(topic, bytes) != session.by_id for topic, _ in (*named, *forgotten)):
            text = f"session {session.id} names topics by {'id' if session.by_id else 'name'}"
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, text)
        return session

    def _update(self, session: FetchSession, named: Sequence[Wanted], forgotten: Sequence[Key], now_ms: int) -> None:
        """Raises ApiError: INVALID_REQUEST, nothing was changed; FETCH_SESSION_ID_NOT_FOUND, the session has ended."""
        keys = [(topic, partition.index) for topic, partition in named]
        before = len(session)
        added = session.check_added(keys)
        if added and not self._make_room(added, before + added, session.of_replica, now_ms, grows=session):
            self._end_session(session)
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"session {session.id}: no room for {added} more")
        session.update(named, forgotten)
        self._cache.resized(len(session) - before)
        self._hold(session, keys)
        self._release(session, forgotten)

    def _end_session(self, session: FetchSession | None) -> None:
        if session is not None:
            self._cache.remove(session)
            self._release(session, session)
            session.epoch = FINAL_EPOCH  # who still waits is told so
            if session.wake is not None:
                session.wake()

    def _hold(self, session: FetchSession, keys: Iterable[Key]) -> None:
        if session.by_id:
            for key in keys:
                self._holders.setdefault(key, {})[session.id] = session

    def _release(self, session: FetchSession, keys: Iterable[Key]) -> None:
        for key in keys:
            holders = self._holders.get(key, _NOBODY)
            if holders.pop(session.id, None) is not None and not holders:
                del self._holders[key]

    # --- the cache ---

    def _new_session(self, turn: FetchTurn, answered: Sequence[Answered], now_ms: int) -> int:
        """Its id; NO_SESSION where there is no room, or its topics are named in both ways."""
        kinds = {isinstance(topic, bytes) for topic, _ in turn.wanted}
        if len(kinds) != 1 or len(turn.wanted) > MAX_PARTITIONS:
            return NO_SESSION
        size = len(turn.wanted)
        if not self._make_room(size, size, turn.replica is not None, now_ms):
            return NO_SESSION
        session = FetchSession(self._free_id(), True in kinds, turn.replica, now_ms, now_ms)
        session.update(turn.wanted, ())
        session.told(answered)
        self._cache.add(session)
        self._hold(session, session)
        return session.id

    def _make_room(
        self, added: int, size: int, of_replica: bool, now_ms: int, *, grows: FetchSession | None = None
    ) -> bool:
        """False: there is none, and nobody has ended."""
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
        held = [key for session in self._sessions.values() if session.by_id for key in session]
        assert sorted(held) == sorted(key for key, holders in self._holders.items() for _ in holders)


_NOBODY: dict[int, FetchSession] = {}
