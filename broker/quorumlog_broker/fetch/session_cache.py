"""Which fetch sessions a broker keeps, and which of them are evicted for a new or growing one (KIP-227). Pure.

The cache has room for `slots` sessions that hold `max_partitions` partitions together: a session costs little, each of
its partitions 320 to 760 bytes (measured; more, the fewer other sessions hold it). A session that needs room takes it
from sessions that were not used for `evict_ms`; then from the smallest that are older than `evict_ms` and smaller than
itself, where a follower's session counts as larger than any consumer's. If that is not enough, no session is evicted.
Sessions are few, so candidates are searched for.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog_broker.fetch.session import FetchSession

EVICT_MS = 120_000  # a session that was used within this time is evicted only for a larger one
IDLE_MS = 600_000  # longer than a request may wait (`limits.max_wait_ms`): it uses its session when it arrives


class FetchSessionCache:
    """Invariants: at most `slots` sessions with `max_partitions` partitions; least recently used first."""

    def __init__(self, slots: int, max_partitions: int, evict_ms: int) -> None:
        self._slots = slots
        self._max_partitions = max_partitions
        self._evict_ms = evict_ms
        self.sessions: dict[int, FetchSession] = {}  # by their ids; only this class changes it
        self.partitions = 0  # of all sessions together

    def add(self, session: FetchSession) -> None:
        self.sessions[session.id] = session
        self.partitions += len(session)

    def remove(self, session: FetchSession) -> None:
        del self.sessions[session.id]
        self.partitions -= len(session)

    def resized(self, by: int) -> None:
        """A session of the cache has grown by so many partitions (negative: shrunk)."""
        self.partitions += by

    def use(self, session: FetchSession, now_ms: int) -> None:
        session.used_ms = now_ms
        del self.sessions[session.id]
        self.sessions[session.id] = session

    def idle(self, now_ms: int) -> FetchSession | None:
        """A session that was not used for IDLE_MS; None: there is none."""
        oldest = next(iter(self.sessions.values()), None)
        return oldest if oldest is not None and now_ms - oldest.used_ms > IDLE_MS else None

    def victims(
        self, added: int, size: int, of_replica: bool, now_ms: int, *, grows: FetchSession | None = None
    ) -> list[FetchSession] | None:
        """The sessions to end so that `added` partitions fit, of a session that will hold `size`; None: no room.

        grows: the session itself, if it is not a new one.
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
        """The sessions that may be evicted for one of that size, in this order."""
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
