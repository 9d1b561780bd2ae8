"""When a new segment begins because of time, Kafka's `LogSegment.shouldRoll` and `timeWaitedForRoll`.

A batch goes to a new segment if it is more than `segment.ms`, less the segment's jitter, later than the first batch of
the last one. Both times are the largest timestamps of the batches, so a log that is idle does not roll, and a follower
rolls where its leader does. Where the first batch has no timestamp, the time since the segment was begun or opened
counts. An empty segment never rolls.

The jitter is a share of `segment.jitter.ms`, drawn for each segment: the settings may change under it.
"""

from __future__ import annotations

from quorumlog_storage.files.clock_and_jitter import RollSources
from quorumlog_storage.segment.log_config import NEVER, LogConfig

ANY_TIME = NEVER
NO_TIME_AT_ALL = -(1 << 63)  # before every timestamp


class RollClock:
    """Of one log: the jitter of its last segment, and when that was begun. Used by its writer only."""

    def __init__(self, sources: RollSources) -> None:
        self._sources = sources
        self.begin()

    def begin(self) -> None:
        """Another segment is the last one, or the last one was emptied."""
        self._since_ms = self._sources.wall_ms()
        self._share: float | None = None

    def latest(self, first_timestamp: int, config: LogConfig) -> int:
        """The largest timestamp of a batch that may follow in the segment.

        first_timestamp: of the segment's first batch, ms; -1 if it has none.
        """
        if config.segment_ms == NEVER:
            return ANY_TIME
        allowed_ms = config.segment_ms - self._jitter_ms(config)
        if first_timestamp >= 0:
            return first_timestamp + allowed_ms
        waited_ms = self._sources.wall_ms() - self._since_ms
        return NO_TIME_AT_ALL if waited_ms > allowed_ms else ANY_TIME

    def _jitter_ms(self, config: LogConfig) -> int:
        if config.segment_jitter_ms == 0:
            return 0
        if self._share is None:
            self._share = self._sources.draw()
        return int(self._share * min(config.segment_jitter_ms, config.segment_ms))
