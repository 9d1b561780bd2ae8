"""How long the leader's batches wait for their commit: from the append to the high watermark behind them.

Source: `commit-latency` of Kafka's raft-metrics. The times are in steps of the clock's millisecond.
"""

from __future__ import annotations

from collections import deque

from quorumlog.histogram import Histogram
from quorumlog.ids import Offset

MAX_WAITING = 10_000  # batches; where more wait, the oldest are not timed


class CommitTimes:
    """Of one node, whenever it leads."""

    def __init__(self) -> None:
        self.histogram = Histogram("call")
        self._waiting: deque[tuple[Offset, int]] = deque(maxlen=MAX_WAITING)  # (end, when it was appended)

    def appended(self, end_offset: Offset, now_ms: int) -> None:
        """end_offset: exclusive, of a batch that this leader has appended."""
        self._waiting.append((end_offset, now_ms))

    def committed(self, high_watermark: Offset, now_ms: int) -> None:
        """high_watermark: exclusive."""
        while self._waiting and self._waiting[0][0] <= high_watermark:
            _, appended_ms = self._waiting.popleft()
            self.histogram.observe((now_ms - appended_ms) / 1000)

    def lost(self) -> None:
        """The leadership is over: what waits may never be committed."""
        self._waiting.clear()
