"""Finds a disk that hangs: a changing call that is open for too long. Pure; the node's loop looks from time to time.

A disk can stop answering without an error: a controller resets, a network file system is away, a drive retries for
ever. The thread that made the call waits in the kernel and cannot be woken. That the call does not return can be seen
from outside only.

Time counts only while the loop itself was awake. Between two looks at most `SILENCE_TICKS` ticks count, however long
the loop was silent. So a process that was stopped (SIGSTOP), or that got no processor, does not take its own silence
for the disk's: after it goes on, the call still has the time that it had not used before.

Why: decision 0018.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

TICKS_PER_STALL = 20  # a stall is found at most this part of the limit too late
SILENCE_TICKS = 2


class OpenCall(NamedTuple):
    """A changing call of a disk that has begun and has not returned. Two calls are two objects, however equal.

    op: as in a DiskError: "write", "sync", "rename", ...
    """

    op: str
    path: str


class DirectoryStalled(Exception):
    """A call has not returned in time. What it changes may still reach the disk, at any time."""

    def __init__(self, call: OpenCall, open_ms: int, limit_ms: int) -> None:
        super().__init__(
            f"{call.op} of {call.path} has not returned for {open_ms} ms (log.dir.stall.ms={limit_ms}); look at the "
            "kernel's log and at the disk's latency (iostat -x 1), and check its cable, controller or network"
        )
        self.call, self.open_ms = call, open_ms


class StallWatch:
    """The open calls of one log directory."""

    def __init__(self, limit_ms: int) -> None:
        self.limit_ms = limit_ms
        self.tick_ms = max(1, limit_ms // TICKS_PER_STALL)  # how often to look
        self._open: list[tuple[OpenCall, int]] = []  # calls at the last look, and how long each was seen open, in ms
        self._looked_ms: int | None = None

    @property
    def longest_ms(self) -> int:
        """Of the calls that were open at the last look."""
        return max((seen_ms for _, seen_ms in self._open), default=0)

    def look(self, calls: Iterable[OpenCall], now_ms: int) -> DirectoryStalled | None:
        """calls: all that are open now. now_ms: monotonic. Returns the stall, if a call reached the limit."""
        passed_ms = 0 if self._looked_ms is None else min(now_ms - self._looked_ms, SILENCE_TICKS * self.tick_ms)
        self._looked_ms = now_ms
        self._open = [(call, self._seen_ms(call, passed_ms)) for call in calls]
        for call, seen_ms in self._open:
            if seen_ms >= self.limit_ms:
                return DirectoryStalled(call, seen_ms, self.limit_ms)
        return None

    def _seen_ms(self, call: OpenCall, passed_ms: int) -> int:
        """A call that is new at this look has been seen open for no time yet."""
        for known, seen_ms in self._open:
            if known is call:
                return seen_ms + passed_ms
        return 0
