"""Lines about requests that took long: what they were, whose, and in which part. At most MAX_LINES a second.

What a request was willing to wait for, and what a client's quota costs it, makes it not slow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorumlog.rpc.serving.dispatch import PeerContext
    from quorumlog.rpc.serving.request_parts import Timing

MAX_LINES = 10  # a second
LOOK_S = 1.0  # how long a change of the limit may take to count
MAX_SHOWN = 100  # characters of a name that a client chose
REMOTE = 2  # its place in `request_parts.PARTS`

_log = logging.getLogger("quorumlog.requests")


class SlowLog:
    """Of one node. least_ms: from which on a request is slow; asked for once in LOOK_S.

    look_s: when it is asked for again. slow: how many there were. left_out: how many of them had no line.
    """

    def __init__(self, node_id: int, least_ms: Callable[[], int]) -> None:
        self._node_id, self._least_ms = node_id, least_ms
        self.least_s = 0.0
        self.look_s = float("-inf")
        self._second_s, self._lines = float("-inf"), 0
        self.slow = self.left_out = 0
        self._untold = 0  # since the last line

    def look(self, now_s: float) -> None:
        self.least_s, self.look_s = self._least_ms() / 1000, now_s + LOOK_S

    def judge(self, timing: Timing, parts_s: tuple[float, ...], context: PeerContext, now_s: float) -> None:
        """Of a request that has ended, which took `least_s` or more."""
        total_s = now_s - timing.arrived_s
        if total_s - min(parts_s[REMOTE], timing.wait_s) - timing.held_s < self.least_s:
            return
        self.slow += 1
        if self._is_due(now_s):
            _log.info(*_line(timing, parts_s, total_s, context), extra={"request": self._id(timing, context)})
            self._untold = 0

    def _id(self, timing: Timing, context: PeerContext) -> str:
        return f"{self._node_id}:{context.number}:{timing.correlation}"

    def _is_due(self, now_s: float) -> bool:
        if now_s - self._second_s >= 1.0:
            if self._untold:
                _log.info("%d more requests were slow and have no line", self._untold)
            self._second_s, self._lines = now_s, 0
        if self._lines >= MAX_LINES:
            self.left_out += 1
            self._untold += 1
            return False
        self._lines += 1
        return True


def _line(timing: Timing, parts_s: tuple[float, ...], total_s: float, context: PeerContext) -> tuple[object, ...]:
    """The text and what it is filled with."""
    milliseconds = (round(part_s * 1000) for part_s in parts_s)
    return (
        "slow %s: %d ms (queue %d, local %d, remote %d, throttle %d, response queue %d, response send %d); "
        "%s, client %r, from %s, %d bytes, topics: %d",
        timing.api, round(total_s * 1000), *milliseconds,
        str(context.principal)[:MAX_SHOWN], context.client_id[:MAX_SHOWN], context.client_host or "here",
        timing.size_bytes, timing.topics,
    )  # fmt: skip
