"""One partition of an incremental fetch session: what its reader asks, what its reader knows, and whether to read it.

The states, from the leader's point of view. "The request" is the session's current one; while a session has none (the
last one was answered), every partition is CAUGHT_UP or DIRTY.

    CAUGHT_UP   the reader stands at the readable end and knows everything; a request need not read the partition
    DIRTY       not read by the request, and there may be something that the reader does not have or know
    READ        read by the request; nothing has changed since the request arrived
    STALE       read by the request, and changed since that read: the request reads it again
    REREAD      read by the request after a change that came later than the request

    event                              CAUGHT_UP   DIRTY    READ               STALE    REREAD
    changed (or named by a request)    DIRTY       DIRTY    STALE              STALE    STALE
    request overtaken by the next                           DIRTY              DIRTY    DIRTY
    request begins: its first read                 READ
    request reads what has changed                 REREAD                      REREAD
    request answered                                        CAUGHT_UP, DIRTY   DIRTY    DIRTY

An empty place: the event does not concern a partition in this state. The last line's two cases: CAUGHT_UP if the reader
has everything, DIRTY if there is more to read or the response is an error. STALE and REREAD become DIRTY although the
response may hold everything: a follower's request acknowledges when it arrives, and an acknowledgement from before a
change (a new ISR, say) may not count after it. So the next request reads, and acknowledges, the partition once more.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, auto

from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.fetch import FetchPartitionResponse
from quorumlog_broker.fetch.targets import FetchTarget

NO_FETCH_MS = -1
UNKNOWN: Offset = -1


class ReadState(IntEnum):
    CAUGHT_UP = auto()
    DIRTY = auto()
    READ = auto()
    STALE = auto()
    REREAD = auto()


class Happened(IntEnum):
    CHANGED = auto()
    OVERTAKEN = auto()
    FIRST_READ = auto()
    NEXT_READ = auto()
    ANSWERED_WHOLLY = auto()
    ANSWERED_PARTLY = auto()  # there is more to read, or the response is an error


_CAUGHT_UP, _DIRTY, _READ, _STALE, _REREAD = ReadState
_WHOLLY, _PARTLY = Happened.ANSWERED_WHOLLY, Happened.ANSWERED_PARTLY

TRANSITIONS: Mapping[Happened, Mapping[ReadState, ReadState]] = {
    Happened.CHANGED: {_CAUGHT_UP: _DIRTY, _DIRTY: _DIRTY, _READ: _STALE, _STALE: _STALE, _REREAD: _STALE},
    Happened.OVERTAKEN: {_READ: _DIRTY, _STALE: _DIRTY, _REREAD: _DIRTY},
    Happened.FIRST_READ: {_DIRTY: _READ},
    Happened.NEXT_READ: {_DIRTY: _REREAD, _STALE: _REREAD},
    Happened.ANSWERED_WHOLLY: {_READ: _CAUGHT_UP, _STALE: _DIRTY, _REREAD: _DIRTY},
    Happened.ANSWERED_PARTLY: {_READ: _DIRTY, _STALE: _DIRTY, _REREAD: _DIRTY},
}
TO_READ = (_DIRTY, _STALE)
IN_REQUEST = (_READ, _STALE, _REREAD)


@dataclass(slots=True)
class CachedPartition:
    """target: what the reader asks of the partition now. high_watermark, log_start_offset: as the reader knows them.

    fetched_ms: of a follower's partition that is not CAUGHT_UP: the last request that counted as a fetch of it without
    naming it, unless that was taken account of already (NO_FETCH_MS).
    """

    target: FetchTarget
    state: ReadState = ReadState.DIRTY
    high_watermark: Offset = UNKNOWN
    log_start_offset: Offset = UNKNOWN
    fetched_ms: int = NO_FETCH_MS

    def step(self, happened: Happened) -> ReadState:
        """Follow the table; gives the new state."""
        after = TRANSITIONS[happened].get(self.state)
        assert after is not None, f"{happened.name} in state {self.state.name} of {self.target}"
        self.state = after
        return after

    def forget_high_watermark(self) -> None:
        """The next response sends the high watermark again."""
        self.high_watermark = UNKNOWN

    def update_response(self, response: FetchPartitionResponse) -> bool:
        """The reader knows this response from now on. True: it has to be sent; False: it says nothing new."""
        failed = response.error_code != ErrorCode.NONE
        is_new = (
            failed
            or len(response.records) > 0
            or response.diverging_epoch is not None
            or response.preferred_read_replica >= 0
            or response.high_watermark != self.high_watermark
            or response.log_start_offset != self.log_start_offset
        )
        self.log_start_offset = response.log_start_offset
        self.high_watermark = UNKNOWN if failed else response.high_watermark  # the end of an error has to be sent, too
        return is_new


def answered(response: FetchPartitionResponse, has_more: bool) -> Happened:
    """ANSWERED_WHOLLY if the reader has everything after this response, and no error."""
    is_whole = not has_more and response.error_code == ErrorCode.NONE and response.diverging_epoch is None
    return _WHOLLY if is_whole else _PARTLY
