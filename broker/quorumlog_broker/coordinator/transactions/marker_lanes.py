"""What is under way to one leader: a limited number of markers, and the ids of transactions that wait for room.

A line holds ids only: what of their markers is missing, the coordinator is asked when their turn comes. So a leader
that is away costs memory for the ids of its transactions, which are in the coordinator's memory anyway.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import NamedTuple

from quorumlog.ids import Epoch, NodeId
from quorumlog_broker.coordinator.transactions.state.table import Partition
from quorumlog_broker.produce.transactional import EndTransaction

RETRY_MS = 100


class Owner(NamedTuple):
    """A coordinator: its partition of `__transaction_state`, and the leader epoch in which it leads that."""

    coordinator: int
    leader_epoch: Epoch


class Work(NamedTuple):
    """A decided transaction of a coordinator."""

    owner: Owner
    transactional_id: str


class Marker(NamedTuple):
    work: Work
    ending: EndTransaction
    partition: Partition

    @property
    def owner(self) -> Owner:
        return self.work.owner

    @property
    def transactional_id(self) -> str:
        return self.work.transactional_id


class Line:
    """Transactions in order, each once; their owners have turns, so that one with very many delays no other."""

    def __init__(self) -> None:
        self._ids: OrderedDict[Owner, OrderedDict[str, None]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._ids)

    def __len__(self) -> int:
        return sum(map(len, self._ids.values()))

    def __contains__(self, work: Work) -> bool:
        return work.transactional_id in self._ids.get(work.owner, ())

    def add(self, work: Work) -> None:
        """At the end, unless it is there."""
        self._ids.setdefault(work.owner, OrderedDict()).setdefault(work.transactional_id)

    def pop(self) -> Work:
        """The first one of the owner whose turn it is."""
        owner, ids = next(iter(self._ids.items()))
        transactional_id, _ = ids.popitem(last=False)
        if ids:
            self._ids.move_to_end(owner)
        else:
            del self._ids[owner]
        return Work(owner, transactional_id)

    def discard(self, work: Work) -> None:
        ids = self._ids.get(work.owner)
        if ids is not None:
            ids.pop(work.transactional_id, None)
            if not ids:
                del self._ids[work.owner]

    def remove(self, owner: Owner) -> None:
        self._ids.pop(owner, None)


class Lane:
    """The way to one leader, with one request at a time. leader: None for partitions that have none now.

    max_pending: markers of `queue` and `in_flight` together. waiting: until there is room. retrying: not before
    `retry_at_ms`. paused_until_ms: the last request had no answer.
    """

    def __init__(self, leader: NodeId | None, max_pending: int) -> None:
        self.leader, self._max_pending = leader, max_pending
        self.queue: deque[Marker] = deque()
        self.in_flight: tuple[Marker, ...] = ()
        self.waiting, self.retrying = Line(), Line()
        self.retry_at_ms = self.paused_until_ms = 0

    @property
    def is_full(self) -> bool:
        return len(self.queue) + len(self.in_flight) >= self._max_pending

    def has_room(self, now_ms: int) -> bool:
        return not self.is_full and self.paused_until_ms <= now_ms

    def may_send(self, now_ms: int) -> bool:
        return bool(self.queue) and not self.in_flight and self.paused_until_ms <= now_ms

    def retry(self, work: Work, now_ms: int) -> None:
        """Look at it again in a while, and not before, although more of its markers may have waited for room."""
        if not self.retrying:
            self.retry_at_ms = now_ms + RETRY_MS
        self.retrying.add(work)
        self.waiting.discard(work)

    def end_waits(self, now_ms: int, limit: int) -> None:
        """Transactions to retry wait for room now, `limit` of them at most: a partition that goes on failing costs
        no more than that each `RETRY_MS`."""
        if not self.retrying or self.retry_at_ms > now_ms:
            return
        for _ in range(min(limit, len(self.retrying))):
            self.waiting.add(self.retrying.pop())
        self.retry_at_ms = now_ms + RETRY_MS

    def next_ms(self) -> int | None:
        """When there is something to do. None: not before an answer or another transaction."""
        times = [self.retry_at_ms] if self.retrying else []
        if (self.waiting and not self.is_full) or (self.queue and not self.in_flight):
            times.append(self.paused_until_ms)
        return min(times, default=None)
