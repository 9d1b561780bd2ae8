"""What one fetch request has to do with sessions (Kafka's FetchContext)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import ReplicaState
from quorumlog_broker.fetch.session import FINAL_EPOCH, FetchSession
from quorumlog_broker.fetch.targets import FetchTarget


class FetchContext(NamedTuple):
    """named: the partitions that the request names; all that the session holds, for a session by topic name.

    is_full: the response holds exactly what the request names. begins_session: the response may begin a session.
    ended_session: the session that the request named, and that it has ended.
    """

    named: tuple[FetchTarget, ...]
    replica: ReplicaState | None
    is_full: bool = False
    session: FetchSession | None = None
    epoch: int = FINAL_EPOCH  # of the session, after this request
    begins_session: bool = False
    ended_session: FetchSession | None = None

    @property
    def incremental(self) -> FetchSession | None:
        """The session, if it knows which of its partitions the request has to read."""
        return self.session if self.session is not None and self.session.by_id else None

    @property
    def targets(self) -> Sequence[FetchTarget]:
        """What the request reads, as far as it has come."""
        return self.named if self.incremental is None else self.incremental.in_request

    @property
    def is_empty(self) -> bool:
        """It asks for nothing, and so has nothing to wait for."""
        return not self.named and self.incremental is None

    @property
    def previous_session(self) -> FetchSession | None:
        """The session in which the reader has fetched until now, perhaps without naming its partitions."""
        return self.incremental if self.incremental is not None else self.ended_session

    @property
    def is_current(self) -> bool:
        """The session, if there is one, has not gone on without this request."""
        return self.session is None or self.session.epoch == self.epoch

    def check_current(self) -> None:
        """Raises ApiError(INVALID_FETCH_SESSION_EPOCH): the session goes on without this request."""
        if not self.is_current:
            assert self.session is not None
            text = f"session {self.session.id} was ended, or used by a later request, before this one was answered"
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, text)
