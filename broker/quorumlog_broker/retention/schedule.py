"""When a pass of retention begins, and which time it takes for the present. Pure.

The first pass comes `log.initial.task.delay.ms` after the start (Kafka's `LogManager`), or one interval if that is
less; each other one `log.retention.check.interval.ms` after the last one has ended.

The wall clock of a machine may jump. A jump ahead would let everything go at once, on the followers too, that a topic
keeps by time. So a clock that is suddenly ahead of the time that has passed is not believed until the next pass: until
then the time goes on as before. A clock that is behind only keeps records longer, and is believed at once.
"""

from __future__ import annotations

MAX_JUMP_MS = 60_000  # by so much the wall clock may be ahead of the time that has passed since the last pass


class RetentionSchedule:
    """interval_ms: between two passes. initial_delay_ms: before the first one. now_ms: monotonic, at the start."""

    def __init__(self, interval_ms: int, now_ms: int, *, initial_delay_ms: int) -> None:
        self.interval_ms = interval_ms
        self.due_ms = now_ms + min(initial_delay_ms, interval_ms)
        self._trusted: tuple[int, int] | None = None  # monotonic and wall time of the last pass
        self._is_doubted = False  # the wall clock was ahead at the last pass

    def begin(self, now_ms: int, wall_ms: int) -> int:
        """A pass begins. Returns the wall time, in ms, by which it judges."""
        trusted = wall_ms
        if self._trusted is not None:
            expected = self._trusted[1] + now_ms - self._trusted[0]
            is_ahead = wall_ms > expected + MAX_JUMP_MS
            if is_ahead and not self._is_doubted:
                trusted = expected
            self._is_doubted = is_ahead and not self._is_doubted
        self._trusted = (now_ms, trusted)
        return trusted

    def ended(self, now_ms: int) -> None:
        """The pass is over."""
        self.due_ms = now_ms + self.interval_ms
