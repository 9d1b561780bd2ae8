"""What may be done with a log now: one round at a time, and none while somebody needs the log as it is.

| state | begin | abort and pause | the round ends | resume |
|---|---|---|---|---|
| none | in progress | paused 1 | - | - |
| in progress | - | aborted | none | - |
| aborted, n waiting | - | aborted, n + 1 | paused n | aborted, n - 1; at 0: in progress is over |
| paused n | - | paused n + 1 | - | paused n - 1; none at 0 |

Kafka's `LogCleaningState`. Here nobody has to wait for an aborted round: it changes no live file, and the writer takes
no group of a log that was truncated, closed or shortened since (quorumlog_storage/log/swap.py). A pause saves the
work.
"""

from __future__ import annotations

from quorumlog_broker.partition.key import PartitionKey


class CleaningStates:
    """Used on the loop."""

    def __init__(self) -> None:
        self._running: set[PartitionKey] = set()
        self._pauses: dict[PartitionKey, int] = {}  # no zeros

    def is_free(self, key: PartitionKey) -> bool:
        """A round may begin."""
        return key not in self._running and key not in self._pauses

    def is_aborted(self, key: PartitionKey) -> bool:
        """A round is under way that must end."""
        return key in self._running and key in self._pauses

    def begin(self, key: PartitionKey) -> None:
        assert self.is_free(key), f"{self.describe(key)}: no round may begin"
        self._running.add(key)

    def end(self, key: PartitionKey) -> None:
        assert key in self._running, f"{self.describe(key)}: no round is under way"
        self._running.discard(key)

    def pause(self, key: PartitionKey) -> None:
        """Abort a round that is under way, and begin none until `resume` was called as often."""
        self._pauses[key] = self._pauses.get(key, 0) + 1

    def resume(self, key: PartitionKey) -> None:
        left = self._pauses[key] - 1
        if left:
            self._pauses[key] = left
        else:
            del self._pauses[key]

    def describe(self, key: PartitionKey) -> str:
        pauses = self._pauses.get(key, 0)
        if key in self._running:
            return "aborted" if pauses else "in progress"
        return f"paused ({pauses})" if pauses else "idle"
