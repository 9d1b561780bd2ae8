"""Which brokers are alive, as far as they tell. The active controller keeps it in memory only.

A session is valid for `timeout_ms` after the broker's registration or its last heartbeat, whichever is later. On
activation every unfenced broker begins a full session: the new controller has no heartbeats yet, and must not fence a
broker for that. A fenced broker has no session then: another process may take its id, and keeps it.

A broker sends its next heartbeat only after the answer to the last one. So while a heartbeat waits here for a commit,
the broker's session does not end; it counts from the answer. Otherwise a disk that hangs for a session would fence
every broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorumlog.ids import NodeId, Offset


@dataclass(slots=True)
class Session:
    """metadata_end: exclusive end of the metadata that the broker has applied. shutdown_end: see `Sessions`.

    deletions_done_before: the broker holds no directory of a topic that was deleted below this offset.
    unanswered: how many of its heartbeats wait here.
    """

    contact_ms: int
    metadata_end: Offset = 0
    deletions_done_before: Offset = 0
    shutdown_end: Offset | None = None
    unanswered: int = 0

    def answered(self, now_ms: int) -> None:
        """One heartbeat no longer waits: it was answered, or its caller is gone. The session may be gone, too."""
        self.unanswered -= 1
        self.contact_ms = now_ms


class Sessions:
    """The sessions of brokers, by id.

    shutdown_end: exclusive end of the records that moved the broker's partitions away; set once. The broker may stop
    when every active broker has applied them: then none of them looks for a leader that is gone.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._sessions: dict[NodeId, Session] = {}
        self._held_until_ms = 0

    def reset(self, broker_ids: Iterable[NodeId], now_ms: int) -> None:
        """Forget everything, and give these brokers a full session."""
        self._sessions = {broker_id: Session(now_ms) for broker_id in broker_ids}

    def begin(self, broker_id: NodeId, now_ms: int) -> None:
        """A process has registered as this broker. What was known of an earlier process is forgotten."""
        self._sessions[broker_id] = Session(now_ms)

    def renew(self, broker_id: NodeId, now_ms: int) -> None:
        """The registered process has registered again: it lives."""
        self._sessions.setdefault(broker_id, Session(now_ms)).contact_ms = now_ms

    def touch(self, broker_id: NodeId, metadata_end: Offset, now_ms: int) -> None:
        """A heartbeat has come. metadata_end: exclusive end of the metadata that the broker has applied."""
        self.renew(broker_id, now_ms)
        self._sessions[broker_id].metadata_end = metadata_end

    def note_deletions_done(self, broker_id: NodeId, before: Offset) -> None:
        """As the heartbeat that has just come says."""
        self._sessions[broker_id].deletions_done_before = before

    def deletions_done_before(self, broker_ids: Iterable[NodeId]) -> Offset:
        """None of these brokers holds a directory of a topic that was deleted below this offset; 0: it is not known."""
        sessions = [self._sessions.get(broker_id) for broker_id in broker_ids]
        return min((0 if one is None else one.deletions_done_before for one in sessions), default=0)

    def wait(self, broker_id: NodeId) -> Session:
        """The newest heartbeat waits for its answer. Call `answered` of the result when it no longer waits."""
        session = self._sessions[broker_id]
        session.unanswered += 1
        return session

    def forget(self, broker_id: NodeId) -> None:
        """The broker was fenced."""
        self._sessions.pop(broker_id, None)

    def is_valid(self, broker_id: NodeId, now_ms: int) -> bool:
        session = self._sessions.get(broker_id)
        return session is not None and (session.unanswered > 0 or now_ms < session.contact_ms + self.timeout_ms)

    def expiry_ms(self, broker_id: NodeId) -> int | None:
        """When the session ends, exclusive. None: a heartbeat waits. Without a session: at once, but see `hold`."""
        session = self._sessions.get(broker_id)
        if session is not None and session.unanswered:
            return None
        end_ms = 0 if session is None else session.contact_ms + self.timeout_ms
        return max(end_ms, self._held_until_ms)

    def hold(self, until_ms: int) -> None:
        """No session ends before `until_ms`."""
        self._held_until_ms = until_ms

    def note_shutdown_end(self, broker_id: NodeId, end_offset: Offset) -> None:
        session = self._sessions[broker_id]
        if session.shutdown_end is None:
            session.shutdown_end = end_offset

    def may_stop(self, broker_id: NodeId, active: Iterable[NodeId]) -> bool:
        """Every broker of `active` has applied what moved this one's partitions away."""
        end = self._sessions[broker_id].shutdown_end
        return end is not None and all(self.metadata_end(other) >= end for other in active)

    def metadata_end(self, broker_id: NodeId) -> Offset:
        """Exclusive end of the metadata that the broker has applied, as its last heartbeat says; 0: not known."""
        session = self._sessions.get(broker_id)
        return 0 if session is None else session.metadata_end
