"""How much a fetch would get, counted on from its last read: no record is read again. Pure.

A consumer may ask for megabytes and wait for them while thousands of small batches arrive. If it read at each of them,
all that it has waited for would be read each time. So its partitions are read when it arrives and when it is answered;
in between the bytes that come are counted (Kafka's DelayedFetch compares positions for the same reason).

The count is exact, so the fetch is answered when a read at every change would have found enough. Only what the fetch
as a whole may have is left out of the count: a partition that is cut by it has filled the response already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorumlog.errors import ApiError
from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog_broker.fetch.partition_read import PartitionRead, position_fault
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.partition.tail import MAX_BATCHES_READ
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.isolation import Isolation, upper_bound


class Enough(NamedTuple):
    """When a response is worth sending. needed_bytes: no more than the response may have."""

    needed_bytes: int

    def reached(self, filled_bytes: int, batches: int) -> bool:
        """batches: as many as one response takes from memory are enough, whatever their size."""
        return filled_bytes >= self.needed_bytes or batches >= MAX_BATCHES_READ


LogFor = Callable[[Replica, Epoch | None], Log]  # what the reader may read there; raises ApiError


class CountedPartition:
    """One partition of a waiting fetch. filled_bytes, batches: as a read would have them now.

    read: the last read of the partition, which has got its records; None: it was not read, because the reader stood at
    the readable end.
    """

    __slots__ = ("_end", "_first_bytes", "_is_cut", "_leader", "_limit_bytes", "batches", "filled_bytes", "target")

    def __init__(self, target: FetchTarget, read: PartitionRead | None) -> None:
        self.target = target
        self.filled_bytes = self.batches = self._first_bytes = 0
        self._end = target.partition.fetch_offset  # exclusive, of what was counted
        self._is_cut = False
        self._limit_bytes = max(1, target.partition.max_bytes)
        self._leader: tuple[Replica, Epoch] | None = None  # whose records were counted
        if read is not None:
            self._end = max(self._end, read.readable_end)
        if read is not None and read.replica is not None and read.size_bytes:
            self.filled_bytes, self.batches, self._is_cut = read.filled_bytes, read.batches, read.is_cut
            self._first_bytes = read.size_bytes  # or less, which matters only where the first batch exceeds the limit
            self._leader = read.replica, read.leader_epoch

    @property
    def end(self) -> Offset:
        """Exclusive end of what was counted, or where the reader stands."""
        return self._end

    def count(self, found: Replica, end: Offset) -> bool:
        """Count on to `end` (exclusive). False: what was counted does not hold any more, or the rest is not in memory;
        the partition has to be read."""
        leader = (found, found.core.leader_epoch)
        if self._leader is not None and self._leader != leader:
            return False
        if self._is_cut or end <= self._end:
            return True
        counted = found.tail.count(self._end, end)
        if counted is None:
            return False
        self._leader, self._end = leader, end
        self._add(counted.size_bytes, counted.batches, self._first_bytes or counted.first_bytes)
        return True

    def _add(self, size_bytes: int, batches: int, first_bytes: int) -> None:
        self._first_bytes = first_bytes
        self.batches += batches
        self.filled_bytes += size_bytes
        if self.filled_bytes > self._limit_bytes:  # as `PartitionRead.filled_bytes` of a read that is cut
            self.filled_bytes, self._is_cut = max(self._limit_bytes, first_bytes), True


class FetchCount:
    """The partitions of one waiting fetch together."""

    def __init__(self, registry: Registry, log_for: LogFor, isolation: Isolation, enough: Enough) -> None:
        self._registry, self._log_for, self._isolation, self._enough = registry, log_for, isolation, enough
        self._filled_bytes = self._batches = 0

    def add(self, target: FetchTarget, read: PartitionRead | None) -> CountedPartition:
        partition = CountedPartition(target, read)
        self._filled_bytes += partition.filled_bytes
        self._batches += partition.batches
        return partition

    def recount(self, partition: CountedPartition) -> bool:
        """The partition has changed. True: the fetch has to read: there is enough, or something else to answer."""
        before_bytes, before_batches = partition.filled_bytes, partition.batches
        if not self._count(partition):
            return True
        self._filled_bytes += partition.filled_bytes - before_bytes
        self._batches += partition.batches - before_batches
        return self._enough.reached(self._filled_bytes, self._batches)

    def _count(self, partition: CountedPartition) -> bool:
        topic, wanted = partition.target
        try:
            found = self._registry.find(topic, wanted.index)
            log = self._log_for(found, None if wanted.current_leader_epoch == NO_EPOCH else wanted.current_leader_epoch)
        except ApiError:
            return False
        if position_fault(log, wanted) is not None:
            return False
        return partition.count(found, upper_bound(self._isolation, found.core))
