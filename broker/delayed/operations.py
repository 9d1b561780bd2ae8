"""Who waits at this broker: for logs to grow, and for high watermarks to pass. Purgatories with the loop's timer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.delayed.purgatory import Purgatory, Reason, Waiter
from broker.fetch.sessions import FetchSessions
from broker.replicas.reconciler import PartitionKey
from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.ids import Offset

Done = Callable[[Reason], None]


class DelayedQueue:
    """A purgatory of partitions whose deadlines ring by themselves.

    on_moved: told of everything that may complete a waiter, for those who wait in another way.
    """

    def __init__(self, clock: Clock, on_moved: Callable[[PartitionKey], None] = lambda _key: None) -> None:
        self._on_moved = on_moved
        self._clock = clock
        self._purgatory: Purgatory[PartitionKey] = Purgatory()
        self._alarm = Alarm(clock, self._purgatory.deadline_ms, self._expire)

    def __len__(self) -> int:
        return len(self._purgatory)

    def watch(self, wanted: Sequence[tuple[PartitionKey, Offset]], timeout_ms: int, done: Done) -> Waiter[PartitionKey]:
        """See `Purgatory.watch`."""
        waiter = self._purgatory.watch(wanted, self._clock.now_ms() + timeout_ms, done)
        self._alarm.arm()
        return waiter

    def reached(self, key: PartitionKey, position: Offset) -> None:
        self._purgatory.reached(key, position)
        self._on_moved(key)

    def state_changed(self, key: PartitionKey) -> None:
        self._purgatory.state_changed(key)
        self._on_moved(key)

    def cancel(self, waiter: Waiter[PartitionKey]) -> None:
        self._purgatory.cancel(waiter)

    def close(self) -> None:
        self._alarm.cancel()

    def _expire(self, now_ms: int, _late_ms: int) -> None:
        self._purgatory.expire(now_ms)


class DelayedOperations:
    """ends: keyed by published log ends, for followers. commits: by high watermarks, for consumers and producers.
    starts: by low watermarks, for who deletes records. Fetch sessions wait for ends and commits, too.
    """

    def __init__(self, clock: Clock, sessions: FetchSessions) -> None:
        self.ends = DelayedQueue(clock, lambda key: sessions.wake(key, of_replica=True))
        self.commits = DelayedQueue(clock, lambda key: sessions.wake(key, of_replica=False))
        self.starts = DelayedQueue(clock)

    def state_changed(self, key: PartitionKey) -> None:
        self.ends.state_changed(key)
        self.commits.state_changed(key)
        self.starts.state_changed(key)

    def close(self) -> None:
        self.ends.close()
        self.commits.close()
        self.starts.close()
