"""Appends that wait because the queue of their log directory is full.

They have no offsets yet: an append is numbered when it enters the directory's queue. So one that waits in vain leaves
no gap. Appends of one partition keep their order: behind one that waits, all wait. A line belongs to one directory, so
that a slow disk holds up no other one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.partition.key import PartitionKey

MAX_WAITING = 1_000  # appends of one directory; their bytes are those of requests that are being handled
MAX_WAIT_MS = 5_000  # of one append, if its request does not allow less
RETRY_MS = 5  # how often the first one tries; a turn of the writer takes about as long

Enqueue = Callable[[], None]
Refused = Callable[[ApiError], None]


class _Waiting(NamedTuple):
    key: PartitionKey
    deadline_ms: int
    enqueue: Enqueue
    refused: Refused


class AppendLine:
    """Of one log directory. Used on the loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._line: deque[_Waiting] = deque()
        self._of_partition: dict[PartitionKey, int] = {}  # how many of the line; no zeros
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._line)

    def holds_up(self, key: PartitionKey) -> bool:
        """True if an append to this partition has to join the line, so that it does not overtake another."""
        return key in self._of_partition

    def join(self, key: PartitionKey, timeout_ms: int, enqueue: Enqueue, refused: Refused) -> None:
        """Call `enqueue` in the order of joining, once it raises no Busy any more; or `refused`, with its other errors.

        Raises Busy if the line is full.
        """
        if len(self._line) >= MAX_WAITING:
            raise Busy(f"{MAX_WAITING} appends wait for a place in the directory's queue; nothing was appended")
        deadline_ms = self._clock.now_ms() + min(timeout_ms, MAX_WAIT_MS)
        self._line.append(_Waiting(key, deadline_ms, enqueue, refused))
        self._of_partition[key] = self._of_partition.get(key, 0) + 1
        self._try_later()

    def close(self) -> None:
        """Refuse everything that waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._line:
            self._leave().refused(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker is shutting down"))

    def _try_later(self) -> None:
        if self._timer is None and self._line:
            self._timer = asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._try)

    def _try(self) -> None:
        self._timer = None
        while self._line:
            first = self._line[0]
            try:
                first.enqueue()
            except Busy as busy:
                if self._clock.now_ms() < first.deadline_ms:
                    break
                self._leave().refused(busy)
            except ApiError as error:
                self._leave().refused(error)
            else:
                self._leave()
        self._try_later()

    def _leave(self) -> _Waiting:
        first = self._line.popleft()
        self._of_partition[first.key] -= 1
        if not self._of_partition[first.key]:
            del self._of_partition[first.key]
        return first
