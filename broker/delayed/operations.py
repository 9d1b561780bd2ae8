"""The delayed operations of a broker: requests that wait for a log's end, a high watermark or a low watermark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.delayed.purgatory import Purgatory, Reason, Waiter
from broker.partition.key import PartitionKey
from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.ids import Offset

Done = Callable[[Reason], None]


class DelayedQueue:
    """A purgatory of partitions with a timer for its deadlines."""

    def __init__(self, clock: Clock) -> None:
        self._subscribers: tuple[Callable[[PartitionKey], None], ...] = ()
        self._clock = clock
        self._purgatory: Purgatory[PartitionKey] = Purgatory()
        self._alarm = Alarm(clock, self._purgatory.deadline_ms, self._expire)

    def __len__(self) -> int:
        return len(self._purgatory)

    def subscribe(self, tell: Callable[[PartitionKey], None]) -> None:
        """Call `tell` after every event that may complete a waiter of the partition, even if there was none."""
        self._subscribers = (*self._subscribers, tell)

    def watch(self, wanted: Sequence[tuple[PartitionKey, Offset]], timeout_ms: int, done: Done) -> Waiter[PartitionKey]:
        """See `Purgatory.watch`; the deadline is timeout_ms from now."""
        waiter = self._purgatory.watch(wanted, self._clock.now_ms() + timeout_ms, done)
        self._alarm.arm()
        return waiter

    def reached(self, key: PartitionKey, position: Offset) -> None:
        self._purgatory.reached(key, position)
        for tell in self._subscribers:
            tell(key)

    def state_changed(self, key: PartitionKey) -> None:
        self._purgatory.state_changed(key)
        for tell in self._subscribers:
            tell(key)

    def cancel(self, waiter: Waiter[PartitionKey]) -> None:
        self._purgatory.cancel(waiter)

    def close(self) -> None:
        self._alarm.cancel()

    def _expire(self, now_ms: int, _late_ms: int) -> None:
        self._purgatory.expire(now_ms)


class DelayedOperations:
    """ends: wait for the end of a leader's log (fetches of followers). commits: wait for a high watermark (fetches of
    consumers, produce with acks=all). starts: wait for a low watermark (deletion of records).
    """

    def __init__(self, clock: Clock) -> None:
        self.ends = DelayedQueue(clock)
        self.commits = DelayedQueue(clock)
        self.starts = DelayedQueue(clock)

    def state_changed(self, key: PartitionKey) -> None:
        self.ends.state_changed(key)
        self.commits.state_changed(key)
        self.starts.state_changed(key)

    def close(self) -> None:
        self.ends.close()
        self.commits.close()
        self.starts.close()
