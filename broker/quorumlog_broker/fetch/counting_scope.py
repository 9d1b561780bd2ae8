"""What a consumer's fetch waits for if it needs more than a byte: it counts what comes, and wakes when that is enough.

Two scopes, like those of `scope.py`. Each change of a partition costs a count of what is new in that partition, and
nothing for the others. What completes a fetch besides bytes (an error, another leader, a position that is not in the
log any more) wakes it as well, and so does a partition that cannot be counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from quorumlog_broker.delayed.operations import DelayedQueue
from quorumlog_broker.delayed.purgatory import Reason, Waiter
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.counted_partition import CountedPartition, FetchCount
from quorumlog_broker.fetch.partition_read import PartitionRead
from quorumlog_broker.fetch.scope import ChangedPartitions, NamedPartitions, Wake, Watched
from quorumlog_broker.fetch.session import FetchSession
from quorumlog_broker.fetch.targets import FetchTarget, Key
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_storage.rules.isolation import Isolation

NewCount = Callable[[], FetchCount]


class CountedNames(NamedPartitions):
    """The partitions that a request names, each with a waiter of its own. max_wait_ms: of the fetch."""

    def __init__(
        self,
        targets: Sequence[FetchTarget],
        isolation: Isolation,
        new_count: NewCount,
        queue: DelayedQueue,
        max_wait_ms: int,
    ) -> None:
        super().__init__(targets, isolation)
        self._new_count, self._queue, self._max_wait_ms = new_count, queue, max_wait_ms
        self._waiters: dict[int, Waiter[PartitionKey]] = {}

    def watch(self, reads: Sequence[PartitionRead], wake: Wake) -> Watched | None:
        if _any_unread(reads):
            return super().watch(reads, wake)
        count = self._new_count()
        partitions = [count.add(target, read) for target, read in zip(self._targets, reads, strict=True)]
        for partition in partitions:
            if count.recount(partition):
                return None  # it has changed while another one was read from the disk
        for number, read in enumerate(reads):
            assert read.replica is not None, "a partition without a replica completes the fetch"
            self._watch(number, read.replica.key, partitions[number], count, wake)
        return ()

    def unwatch(self, wake: Wake) -> None:
        for waiter in self._waiters.values():
            self._queue.cancel(waiter)
        self._waiters.clear()

    def _watch(
        self, number: int, key: PartitionKey, partition: CountedPartition, count: FetchCount, wake: Wake
    ) -> None:
        changed = partial(self._on_changed, number, key, partition, count, wake)
        self._waiters[number] = self._queue.watch([(key, partition.end + 1)], self._max_wait_ms, changed)

    def _on_changed(
        self,
        number: int,
        key: PartitionKey,
        partition: CountedPartition,
        count: FetchCount,
        wake: Wake,
        reason: Reason,
    ) -> None:
        if reason is not Reason.OFFSET or count.recount(partition):
            wake()
        else:
            self._watch(number, key, partition, count, wake)


class CountedChanges(ChangedPartitions):
    """What is not caught up in an incremental session; the session tells which of its partitions have changed."""

    def __init__(self, context: FetchContext, session: FetchSession, new_count: NewCount) -> None:
        super().__init__(session)
        self._context, self._new_count = context, new_count
        self._on_changed: Wake | None = None

    def watch(self, reads: Sequence[PartitionRead], wake: Wake) -> Watched | None:
        if _any_unread(reads):
            return super().watch(reads, wake)
        count = self._new_count()
        targets = self._session.in_request
        partitions = {target.key: count.add(target, read) for target, read in zip(targets, reads, strict=True)}
        if self._recount_changed(partitions, count):
            return None  # while a partition was read from the disk
        self._session.wake = self._on_changed = partial(self._changed, partitions, count, wake)
        return ()

    def unwatch(self, wake: Wake) -> None:
        super().unwatch(self._on_changed or wake)
        self._on_changed = None

    def _changed(self, partitions: dict[Key, CountedPartition], count: FetchCount, wake: Wake) -> None:
        if not self._context.is_current or self._recount_changed(partitions, count):
            wake()

    def _recount_changed(self, partitions: dict[Key, CountedPartition], count: FetchCount) -> bool:
        """True: the fetch has to read."""
        for target in self._session.read_changed():
            if target.key not in partitions:
                partitions[target.key] = count.add(target, None)
            if count.recount(partitions[target.key]):
                return True
        return False


def _any_unread(reads: Sequence[PartitionRead]) -> bool:
    """The disk was busy, or this broker is about to lead, so it is not known how much there is: any change is reason to
    read again."""
    return any(read.disk_bytes or read.upcoming is not None for read in reads)
