"""Large batches whose records are looked at in slices, and the appends that wait behind them.

Most batches are looked at in one slice, before `append` returns, and never come here. For one that takes longer, the
loop does one slice a turn, so that heartbeats and other partitions go on. Later appends to the same partition wait
behind it, whatever their size: the order of appends is the order of arrival. One batch is looked at at a time; what a
waiting one holds is its first slice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog_broker.partition.key import PartitionKey

MAX_WAITING = 128  # appends in the line; each may hold a slice of decompressed bytes
Looked = Callable[[ApiError | None], None]


class _Waiting(NamedTuple):
    key: PartitionKey
    steps: Iterator[None]
    looked: Looked


class RecordChecks:
    """A line of batches. Used on the loop only."""

    def __init__(self) -> None:
        self._line: deque[_Waiting] = deque()
        self._of_partition: dict[PartitionKey, int] = {}  # how many of the line; no zeros

    def __len__(self) -> int:
        return len(self._line)

    def holds_up(self, key: PartitionKey) -> bool:
        """True if an append to this partition has to join the line, so that it does not overtake another."""
        return key in self._of_partition

    def join(self, key: PartitionKey, steps: Iterator[None], looked: Looked) -> None:
        """Call `looked` once, in the order of joining, when `steps` has ended or raised an ApiError.

        Raises ApiError(REQUEST_TIMED_OUT), which clients retry, if the line is full.
        """
        if len(self._line) >= MAX_WAITING:
            text = f"{MAX_WAITING} appends wait until the records of large batches are looked at; nothing was appended"
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, text)
        self._line.append(_Waiting(key, steps, looked))
        self._of_partition[key] = self._of_partition.get(key, 0) + 1
        if len(self._line) == 1:
            asyncio.get_running_loop().call_soon(self._turn)

    def close(self) -> None:
        """Refuse everything that waits."""
        while self._line:
            self._leave(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker is shutting down"))

    def _turn(self) -> None:
        """One slice of the first batch."""
        if not self._line:
            return  # closed since
        try:
            ended = is_ended(self._line[0].steps)
        except ApiError as error:
            self._leave(error)
        else:
            if ended:
                self._leave(None)
        if self._line:
            asyncio.get_running_loop().call_soon(self._turn)

    def _leave(self, error: ApiError | None) -> None:
        first = self._line.popleft()
        self._of_partition[first.key] -= 1
        if not self._of_partition[first.key]:
            del self._of_partition[first.key]
        first.looked(error)


def is_ended(steps: Iterator[None]) -> bool:
    """Takes one step; False if there are more."""
    for _ in steps:
        return False
    return True
