"""The room that a broker has for fetch sessions, and who gives way when it is full (KIP-227). Pure.

There is room for `slots` sessions with `max_partitions` partitions together: a session costs little, each of its
partitions 320 to 760 bytes (measured; the more, the fewer others hold it). Who needs more, a new session or one that
grows, takes the place of those that were not used for `evict_ms`; else of the smallest that are older than `evict_ms`
and smaller than itself, where followers' sessions count as larger than any consumer's. If that is not enough nobody
gives way. Sessions are few, so who does is searched for.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.fetch.session import FetchSession

SLOTS_DEFAULT = 1_000  # max.incremental.fetch.session.cache.slots
MAX_PARTITIONS_DEFAULT = 500_000  # of all sessions together: 160 to 380 MB
EVICT_MS = 120_000  # a session that was used within this time gives way to nobody smaller
IDLE_MS = 600_000  # longer than a request may wait (`limits.max_wait_ms`), for it uses its session when it comes


class FetchSessionCache:
    """Invariants: at most `slots` sessions with `max_partitions` partitions, the one used longest ago first."""

    def __init__(self, slots: int, max_partitions: int, evict_ms: int) -> None:
        self._slots = slots
        self._max_partitions = max_partitions
        self._evict_ms = evict_ms
        self.sessions: dict[int, FetchSession] = {}  # by their ids; to be changed here only
        self.partitions = 0  # of all sessions together

    def add(self, session: FetchSession) -> None:
        self.sessions[session.id] = session
        self.partitions += len(session)

    def remove(self, session: FetchSession) -> None:
        del self.sessions[session.id]
        self.partitions -= len(session)

    def resized(self, by: int) -> None:
        """One of them holds so many partitions more."""
        self.partitions += by

    def use(self, session: FetchSession, now_ms: int) -> None:
        session.used_ms = now_ms
        del self.sessions[session.id]
        self.sessions[session.id] = session

    def idle(self, now_ms: int) -> FetchSession | None:
        """One that was not used for IDLE_MS."""
        oldest = next(iter(self.sessions.values()), None)
        return oldest if oldest is not None and now_ms - oldest.used_ms > IDLE_MS else None

    def victims(
        self, added: int, size: int, of_replica: bool, now_ms: int, *, grows: FetchSession | None = None
    ) -> list[FetchSession] | None:
        """Who has to end for `added` partitions of a session that will hold `size`; None: there is no room.

        grows: the session, if it is not a new one.
        """
        slots = self._slots - len(self.sessions) - (grows is None)
        partitions = self._max_partitions - self.partitions - added
        found: list[FetchSession] = []
        candidates = self._candidates(size, of_replica, now_ms)
        while slots < 0 or partitions < 0:
            victim = next(candidates, None)
            if victim is None:
                return None
            if victim is not grows:
                found.append(victim)
                slots, partitions = slots + 1, partitions + len(victim)
        return found

    def _candidates(self, size: int, of_replica: bool, now_ms: int) -> Iterator[FetchSession]:
        """Who may give way to a session of that size, in that order."""
        sessions = self.sessions.values()
        yield from [session for session in sessions if now_ms - session.used_ms > self._evict_ms]
        smaller = [
            session
            for session in sessions
            if now_ms - session.created_ms > self._evict_ms >= now_ms - session.used_ms
            and (session.of_replica, len(session)) < (of_replica, size)
        ]
        yield from sorted(smaller, key=lambda session: (session.of_replica, len(session), session.id))

    def check_invariants(self) -> None:
        sessions = list(self.sessions.values())
        assert len(sessions) <= self._slots, len(sessions)
        assert self.partitions == sum(map(len, sessions)) <= self._max_partitions, self.partitions
        assert sessions == sorted(sessions, key=lambda session: session.used_ms)
