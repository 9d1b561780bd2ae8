"""The logs that a broker still has to open before it may serve. Pure.

Only logs that the first image assigns to it count: a topic that is created later must not stop a broker that serves.
A log that failed, or that is not needed any more, does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorumlog_broker.partition.key import PartitionKey


class LogsToOpen:
    """`on_done` is called once, as soon as no log is left."""

    def __init__(self, on_done: Callable[[], None]) -> None:
        self._on_done = on_done
        self._waiting: dict[PartitionKey, None] | None = None  # None: not known yet
        self.done = False
        self.made = 0  # replicas that were made and logs that were settled, until it is done

    @property
    def left(self) -> int:
        """The number of logs that are not open yet; 0 before the first image."""
        return len(self._waiting or ())

    @property
    def waiting(self) -> tuple[PartitionKey, ...]:
        """The logs that are not open yet; none before the first image."""
        return tuple(self._waiting or ())

    def replica_made(self) -> None:
        """A replica was made of an image, before its log is opened."""
        self.made += not self.done

    def expect(self, keys: Iterable[PartitionKey]) -> None:
        """Called once, with the first image: these logs are being opened."""
        assert self._waiting is None, "there is one first image"
        self._waiting = dict.fromkeys(keys)
        self._check()

    def settled(self, key: PartitionKey) -> None:
        """The log is open, has failed, or is not needed any more. Other keys and repeated calls do no harm."""
        if self._waiting is not None and key in self._waiting:
            del self._waiting[key]
            self.made += 1
            self._check()

    def _check(self) -> None:
        if not self._waiting and not self.done:
            self.done = True
            self._on_done()
