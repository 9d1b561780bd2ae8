"""All incremental fetch sessions of a broker: which a request belongs to, and who gives way when there are too many.

The table of KIP-227, by (session id, session epoch) of the request:

    any, -1     no session; the one that is named ends
    any, 0      the one that is named ends; a new one begins with the answer, if there is room
    id, epoch   the next request of a session: what it asks for is the session's partitions with the request's changes

A new session takes the place of one that was not used for `evict_ms`; else of the smallest that is older than
`evict_ms` and smaller than itself, where followers' sessions count as larger than any consumer's. Pure: sessions are
few (`slots`), so the victim is searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.fetch_session import (
    FINAL_EPOCH,
    FULL_EPOCH,
    MAX_PARTITIONS,
    NO_SESSION,
    Answered,
    FetchSession,
    Topic,
    Wanted,
    forgotten_of,
    next_epoch,
    wanted_of,
)
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest

if TYPE_CHECKING:
    from random import Random

SLOTS_DEFAULT = 1_000  # max.incremental.fetch.session.cache.slots
EVICT_MS = 120_000  # a session that was used within this time gives way to nobody smaller
MAX_SESSION_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FetchTurn:
    """One request: what to look at.

    whole: exactly what the request names; else what its session holds. begins: the answer may begin a session.
    """

    wanted: tuple[Wanted, ...]
    of_replica: bool
    whole: bool = False
    session: FetchSession | None = None
    epoch: int = FINAL_EPOCH  # of the session, after this request
    begins: bool = False


class FetchSessions:
    def __init__(self, rng: Random, *, slots: int = SLOTS_DEFAULT, evict_ms: int = EVICT_MS) -> None:
        self._rng = rng
        self._slots = slots
        self._evict_ms = evict_ms
        self._sessions: dict[int, FetchSession] = {}  # the one used longest ago first

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, now_ms: int) -> FetchTurn:
        """Raises ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR."""
        of_replica = request.replica is not None
        if request.session_epoch in (FULL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            begins = request.session_epoch == FULL_EPOCH
            return FetchTurn(tuple(wanted_of(request)), of_replica, whole=True, begins=begins)
        session = self._next_of(request)
        session.update(wanted_of(request), forgotten_of(request))
        if not len(session):
            del self._sessions[session.id]
            return FetchTurn((), of_replica)
        session.epoch = next_epoch(session.epoch)
        self._touch(session, now_ms)
        return FetchTurn(tuple(session.wanted()), of_replica, session=session, epoch=session.epoch)

    def end(
        self, turn: FetchTurn, answers: Sequence[FetchPartitionResponse], now_ms: int
    ) -> tuple[int, list[Answered]]:
        """(session id, what is told) for the answers to `turn.wanted`, one each, in their order. Raises ApiError."""
        answered = [(topic, answer) for (topic, _), answer in zip(turn.wanted, answers, strict=True)]
        session = turn.session
        if session is None:
            return self._new_session(turn, answered, now_ms) if turn.begins else NO_SESSION, answered
        if session.epoch != turn.epoch:
            text = f"session {session.id}: the next request came before this answer"
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, text)
        return session.id, session.told(answered)

    def _next_of(self, request: FetchRequest) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id}")
        if session.epoch != request.session_epoch:
            raise ApiError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"session {session.id}: epoch {request.session_epoch}, expected {session.epoch}",
            )
        if any(isinstance(topic, bytes) != session.by_id for topic in _topics_of(request)):
            text = f"session {session.id} names topics by {'id' if session.by_id else 'name'}"
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, text)
        return session

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        session.used_ms = now_ms
        del self._sessions[session.id]
        self._sessions[session.id] = session

    # --- room ---

    def _new_session(self, turn: FetchTurn, answered: Sequence[Answered], now_ms: int) -> int:
        """Its id; NO_SESSION where there is no room, or its topics are named in both ways."""
        kinds = {isinstance(topic, bytes) for topic, _ in turn.wanted}
        if len(kinds) != 1 or len(turn.wanted) > MAX_PARTITIONS:
            return NO_SESSION
        if not self._make_room(len(turn.wanted), turn.of_replica, now_ms):
            return NO_SESSION
        session = FetchSession(self._free_id(), True in kinds, turn.of_replica, now_ms, now_ms)
        session.update(turn.wanted, ())
        session.told(answered)
        self._sessions[session.id] = session
        return session.id

    def _make_room(self, size: int, of_replica: bool, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        victim = self._stale(now_ms) or self._smaller(size, of_replica, now_ms)
        if victim is None:
            return False
        del self._sessions[victim.id]
        return True

    def _stale(self, now_ms: int) -> FetchSession | None:
        oldest = next(iter(self._sessions.values()), None)
        return oldest if oldest is not None and now_ms - oldest.used_ms > self._evict_ms else None

    def _smaller(self, size: int, of_replica: bool, now_ms: int) -> FetchSession | None:
        old = [session for session in self._sessions.values() if now_ms - session.created_ms > self._evict_ms]
        smallest = min(old, key=lambda session: (session.of_replica, len(session), session.id), default=None)
        if smallest is None or (smallest.of_replica, len(smallest)) >= (of_replica, size):
            return None
        return smallest

    def _free_id(self) -> int:
        while True:
            session_id = self._rng.randrange(1, MAX_SESSION_ID + 1)
            if session_id not in self._sessions:
                return session_id


def _topics_of(request: FetchRequest) -> list[Topic]:
    return [topic for topic, _ in wanted_of(request)] + [topic for topic, _ in forgotten_of(request)]
