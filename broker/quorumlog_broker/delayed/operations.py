"""The delayed operations of a broker: requests that wait for a log's end, a high watermark or a low watermark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.ids import Offset
from quorumlog_broker.delayed.purgatory import Purgatory, Reason, Waiter
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_storage.rules.isolation import Isolation

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

    def subscribe(self, listener: Callable[[PartitionKey], None]) -> None:
        """Call `listener` after every event that may complete a waiter of the partition, even if there was none."""
        self._subscribers = (*self._subscribers, listener)

    def watch(self, wanted: Sequence[tuple[PartitionKey, Offset]], timeout_ms: int, done: Done) -> Waiter[PartitionKey]:
        """See `Purgatory.watch`; the deadline is timeout_ms from now."""
        waiter = self._purgatory.watch(wanted, self._clock.now_ms() + timeout_ms, done)
        self._alarm.arm()
        return waiter

    def reached(self, key: PartitionKey, position: Offset) -> None:
        self._purgatory.reached(key, position)
        for listener in self._subscribers:
            listener(key)

    def state_changed(self, key: PartitionKey) -> None:
        self._purgatory.state_changed(key)
        for listener in self._subscribers:
            listener(key)

    def cancel(self, waiter: Waiter[PartitionKey]) -> None:
        self._purgatory.cancel(waiter)

    def close(self) -> None:
        self._alarm.cancel()

    def _expire(self, now_ms: int, _late_ms: int) -> None:
        self._purgatory.expire(now_ms)


class DelayedOperations:
    """ends: wait for the end of a leader's log (fetches of followers). commits: wait for a high watermark (fetches of
    consumers, produce with acks=all). stable: wait for a last stable offset, which moves only with a high watermark
    (fetches of read_committed consumers). starts: wait for a low watermark (deletion of records). leaders: wait for a
    log that is made ready to be led (replicas/upcoming.py); by state only.
    """

    def __init__(self, clock: Clock) -> None:
        self.ends = DelayedQueue(clock)
        self.commits = DelayedQueue(clock)
        self.stable = DelayedQueue(clock)
        self.starts = DelayedQueue(clock)
        self.leaders = DelayedQueue(clock)

    def readable(self, isolation: Isolation) -> DelayedQueue:
        """Where a reader of this isolation waits for its bound to move."""
        if isolation is Isolation.LOG_END:
            return self.ends
        return self.commits if isolation is Isolation.HIGH_WATERMARK else self.stable

    def state_changed(self, key: PartitionKey) -> None:
        self.ends.state_changed(key)
        self.commits.state_changed(key)
        self.stable.state_changed(key)
        self.starts.state_changed(key)
        self.leaders.state_changed(key)

    def close(self) -> None:
        self.ends.close()
        self.commits.close()
        self.stable.close()
        self.starts.close()
        self.leaders.close()
