"""What a fetch reads each time, and what it waits for in between. Two scopes with the same methods. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from quorumlog.ids import Offset
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.partition_read import PartitionRead
from quorumlog_broker.fetch.session import FetchSession
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_storage.rules.isolation import Isolation, upper_bound

Wake = Callable[[], None]
Watched = Sequence[tuple[PartitionKey, Offset]]


class FetchScope(Protocol):
    def next_read(self) -> Sequence[FetchTarget]:
        """What is read now, in the order of the response."""

    def watch(self, reads: Sequence[PartitionRead], wake: Wake) -> Watched | None:
        """The offsets to wait for, in addition to a call of `wake`; None: something has changed already.

        reads: those of the last `next_read`. wake: called from now on when something has changed.
        """

    def unwatch(self, wake: Wake) -> None:
        """The wait has ended."""


class NamedPartitions:
    """Reads all partitions of the request each time, and waits for the end of any of them to move."""

    def __init__(self, targets: Sequence[FetchTarget], isolation: Isolation) -> None:
        self._targets, self._isolation = targets, isolation

    def next_read(self) -> Sequence[FetchTarget]:
        return self._targets

    def watch(self, reads: Sequence[PartitionRead], wake: Wake) -> Watched | None:
        watched: dict[PartitionKey, Offset] = {}  # a request may name a partition twice
        for read in reads:
            if read.replica is not None:
                if upper_bound(self._isolation, read.replica.core) > read.readable_end:
                    return None  # it has grown while another one was read from the disk
                watched[read.replica.key] = read.readable_end + 1
        return list(watched.items())

    def unwatch(self, wake: Wake) -> None:
        """Nothing to do: this scope waits by offsets only."""


class ChangedPartitions:
    """Reads what is not caught up in an incremental session, and waits for the session to learn of a change."""

    def __init__(self, session: FetchSession) -> None:
        self._session = session

    def next_read(self) -> Sequence[FetchTarget]:
        self._session.read_changed()
        return self._session.in_request

    def watch(self, reads: Sequence[PartitionRead], wake: Wake) -> Watched | None:
        if self._session.has_changed:
            return None  # while a partition was read from the disk
        self._session.wake = wake
        return ()

    def unwatch(self, wake: Wake) -> None:
        if self._session.wake is wake:  # else a later request of the session has put its own there
            self._session.wake = None


def scope_of(context: FetchContext, isolation: Isolation) -> FetchScope:
    session = context.incremental
    return NamedPartitions(context.named, isolation) if session is None else ChangedPartitions(session)
