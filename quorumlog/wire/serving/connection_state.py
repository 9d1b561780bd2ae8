"""The state of one served connection: whether requests are read and begun, and when answers are sent. Pure.

Phases:

    NEW         the socket is accepted, nothing was decided yet
    READING     requests are read and begun
    PAUSED      whole requests wait that may not be begun yet, or an unfinished one waits for the node's room, so
                nothing more is read
    DRAINING    the peer sends no more; what it has sent is still carried out and answered
    CLOSING     nothing is begun any more; the socket is about to end, perhaps after its last answers
    CLOSED      the socket has ended

    event            NEW        READING     PAUSED      DRAINING    CLOSING     CLOSED
    accepted         READING
    backlog                     PAUSED      PAUSED      DRAINING    CLOSING     CLOSED
    no backlog                  READING     READING     DRAINING    CLOSING     CLOSED
    peer ended                  DRAINING    DRAINING    DRAINING    CLOSING
    closed by us     CLOSING    CLOSING     CLOSING     CLOSING     CLOSING     CLOSED
    socket lost      CLOSED     CLOSED      CLOSED      CLOSED      CLOSED

Sending. Answers that become ready in one turn of the loop are sent together:

    IDLE        nothing is planned
    BEGINNING   a request is being begun; the code that begins it then sends what is ready
    SCHEDULED   a callback of the loop will send what is ready

    event            IDLE                BEGINNING   SCHEDULED
    begin            BEGINNING                       SCHEDULED
    begun                                IDLE        SCHEDULED
    answer ready     SCHEDULED, or IDLE  BEGINNING   SCHEDULED
    sent by the loop                                 IDLE

An empty place cannot happen; the assertion that says so tells the event and the state. An answer that is ready in state
IDLE is sent at once if its request is the only one at work (the state stays IDLE), else it is scheduled.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, auto

MAX_AT_ONCE = 16  # requests answered without waiting, before other connections have a turn: one read may bring 1,000
RESUMED_PART = 4  # a peer that had stalled takes answers again when one in so many of the allowed bytes is unsent


class Phase(IntEnum):
    NEW = auto()
    READING = auto()
    PAUSED = auto()
    DRAINING = auto()
    CLOSING = auto()
    CLOSED = auto()


class Happened(IntEnum):
    ACCEPTED = auto()
    BACKLOG = auto()
    NO_BACKLOG = auto()
    PEER_ENDED = auto()
    CLOSED_BY_US = auto()
    SOCKET_LOST = auto()


class Sending(IntEnum):
    IDLE = auto()
    BEGINNING = auto()
    SCHEDULED = auto()


_NEW, _READING, _PAUSED, _DRAINING, _CLOSING, _CLOSED = Phase
_IDLE, _BEGINNING, _SCHEDULED = Sending
_OPEN = (_READING, _PAUSED, _DRAINING)
_ENDING = {_DRAINING: _DRAINING, _CLOSING: _CLOSING, _CLOSED: _CLOSED}

TRANSITIONS: Mapping[Happened, Mapping[Phase, Phase]] = {
    Happened.ACCEPTED: {_NEW: _READING},
    Happened.BACKLOG: {_READING: _PAUSED, _PAUSED: _PAUSED, **_ENDING},
    Happened.NO_BACKLOG: {_READING: _READING, _PAUSED: _READING, **_ENDING},
    Happened.PEER_ENDED: {_READING: _DRAINING, _PAUSED: _DRAINING, _DRAINING: _DRAINING, _CLOSING: _CLOSING},
    Happened.CLOSED_BY_US: {**dict.fromkeys(Phase, _CLOSING), _CLOSED: _CLOSED},
    Happened.SOCKET_LOST: {phase: _CLOSED for phase in Phase if phase is not _CLOSED},
}


class ConnectionState:
    """is_open: requests that have come are begun; a phase from READING to DRAINING.

    stalled_since_s: loop time (s) since when the peer takes no answers; None: it takes them.
    """

    __slots__ = ("_at_once", "is_open", "phase", "sending", "stalled_since_s")

    def __init__(self) -> None:
        self.phase = _NEW
        self.is_open = False
        self.sending = _IDLE
        self.stalled_since_s: float | None = None
        self._at_once = 0  # requests that were answered as soon as they were begun, since other connections had a turn

    def step(self, happened: Happened) -> bool:
        """Follow the table of phases. True: the phase is another one now."""
        before = self.phase
        after = TRANSITIONS[happened].get(before)
        assert after is not None, f"{happened.name} in phase {before.name}"
        self.phase, self.is_open = after, after in _OPEN
        return after is not before

    @property
    def may_begin(self) -> bool:
        """As far as this connection alone is concerned, a request may be begun now."""
        return self.is_open and self.stalled_since_s is None and self._at_once < MAX_AT_ONCE

    def has_backlog(self, backlog: bool) -> bool:
        """Requests wait, or none. True: reading is to be paused (phase PAUSED) or resumed (READING) now."""
        if self.phase is (_PAUSED if backlog else _READING):
            return False
        return self.step(Happened.BACKLOG if backlog else Happened.NO_BACKLOG)

    # --- sending

    def unsent(self, unsent_bytes: int, max_bytes: int, now_s: float) -> bool:
        """So many bytes of answers are unsent now. True: the peer had stalled, and takes answers again."""
        if self.stalled_since_s is None:
            if unsent_bytes > max_bytes:
                self.stalled_since_s = now_s
            return False
        if unsent_bytes > max_bytes // RESUMED_PART:
            return False
        self.stalled_since_s = None
        return True

    def begin(self) -> None:
        if self.sending is not _SCHEDULED:
            assert self.sending is _IDLE, "a request is begun while another one is being begun"
            self.sending = _BEGINNING

    def begun(self) -> None:
        if self.sending is not _SCHEDULED:
            assert self.sending is _BEGINNING, "a request was begun without `begin`"
            self.sending = _IDLE

    def answer_ready(self, is_alone: bool) -> Sending | None:
        """What the caller does: IDLE: send now. SCHEDULED: have the loop call `sent_by_loop` soon. None: nothing.

        is_alone: no other request of the connection is at work.
        """
        if self.sending is not _IDLE:
            return None
        if not is_alone:
            self.sending = _SCHEDULED
        return self.sending

    def sent_by_loop(self) -> None:
        assert self.sending is _SCHEDULED, f"the loop sends answers in state {self.sending.name}"
        self.sending = _IDLE

    # --- other connections' turns

    def answered_at_once(self) -> bool:
        """A request was answered as soon as it was begun. True: have the loop call `others_had_turn` soon."""
        self._at_once += 1
        return self._at_once == MAX_AT_ONCE

    def others_had_turn(self) -> None:
        self._at_once = 0
