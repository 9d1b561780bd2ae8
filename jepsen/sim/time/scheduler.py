"""Virtual time: one queue of events for the whole simulated cluster.

Time is an integer of nanoseconds and advances only when no event is left at the current time. Events at the same time
run in the order in which they were scheduled. Each concern has its own random generator, derived from the seed and the
concern's name, so that a new draw in one place does not change the others.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import deque
from collections.abc import Callable, Sized

from jepsen.sim.trace import Trace

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_SEED_BYTES = 16
AT_ONE_TIME = 200_000  # events; the busiest nanosecond of a cluster that works has some thousands
_CANCELLED_KEPT = 1_000  # cancelled timers are removed when there are more than these and they are half of all


class TimeStandsStill(Exception):
    """Events at one time go on making others for the same time: a process would keep its processor busy for ever."""


class Timer:
    """An event that will happen once. `when_ns` is virtual time."""

    __slots__ = ("_scheduler", "function", "when_ns")

    def __init__(self, scheduler: Scheduler, when_ns: int, function: Callable[[], None]) -> None:
        self._scheduler, self.when_ns = scheduler, when_ns
        self.function: Callable[[], None] | None = function  # None: done or cancelled

    def cancel(self) -> None:
        """Idempotent. No effect after the event has happened."""
        if self.function is not None:
            self.function = None
            self._scheduler.on_cancelled()


class Scheduler:
    """Not re-entrant: an event may schedule others, but must not run the scheduler."""

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        self.seed = seed
        self.now_ns = 0
        self.steps = 0  # number of events so far
        self._steps_before = 0  # the time that is now
        self.trace = trace or Trace()
        self._later: list[tuple[int, int, Timer]] = []  # a heap by time, then by the order of scheduling
        # Events scheduled now for now. They run after the events that `_later` still has for this time, because those
        # were scheduled earlier.
        self._now: deque[Timer] = deque()
        self._sequence = 0
        self._cancelled = 0
        self._running = False

    def rng(self, name: str) -> random.Random:
        """A new generator for one concern, such as `net/a/b` or `disk/a`. The same name gives the same numbers."""
        digest = hashlib.blake2b(f"{self.seed}/{name}".encode(), digest_size=_SEED_BYTES).digest()
        return random.Random(int.from_bytes(digest, "big"))

    def record(self, node: str, kind: str, payload: bytes = b"") -> None:
        self.trace.record(self.now_ns, node, kind, payload)

    def call_at(self, when_ns: int, function: Callable[[], None]) -> Timer:
        """Schedule an event at `when_ns`, or now if that has passed."""
        assert type(when_ns) is int, when_ns
        if when_ns <= self.now_ns:
            timer = Timer(self, self.now_ns, function)
            self._now.append(timer)
        else:
            self._sequence += 1
            timer = Timer(self, when_ns, function)
            heapq.heappush(self._later, (when_ns, self._sequence, timer))
        return timer

    def call_later(self, delay_ns: int, function: Callable[[], None]) -> Timer:
        assert delay_ns >= 0, delay_ns
        return self.call_at(self.now_ns + delay_ns, function)

    def next_ns(self) -> int | None:
        """When the next event is due; None if no event is left."""
        self._drop_cancelled()
        if self._now:
            return self.now_ns
        return self._later[0][0] if self._later else None

    def step(self, until_ns: int | None = None) -> bool:
        """Run the next event, advancing time if necessary. False if no event is left, or none that is due by then.

        Raises TimeStandsStill.
        """
        assert not self._running, "the scheduler runs already"
        later, now = self._later, self._now
        while later and later[0][2].function is None:  # `_drop_cancelled`, without a call for each event
            heapq.heappop(later)
        while now and now[0].function is None:
            now.popleft()
        if later and (not now or later[0][0] == self.now_ns):
            if until_ns is not None and later[0][0] > until_ns:
                return False
            timer = heapq.heappop(later)[2]
        elif now and (until_ns is None or self.now_ns <= until_ns):
            timer = now.popleft()
        else:
            return False
        assert timer.when_ns >= self.now_ns, "time went back"
        function, timer.function = timer.function, None
        assert function is not None
        if timer.when_ns > self.now_ns:
            self.now_ns, self._steps_before = timer.when_ns, self.steps
        self.steps += 1
        if self.steps - self._steps_before > AT_ONE_TIME:
            raise TimeStandsStill(f"{AT_ONE_TIME} events at {self.now_ns} ns; the next: {function!r}")
        self._running = True
        try:
            function()
        finally:
            self._running = False
        return True

    def run_until(self, when_ns: int) -> None:
        """Run all events due up to and including `when_ns`, then set the time to `when_ns`."""
        assert when_ns >= self.now_ns
        while self.step(when_ns):
            pass
        self.now_ns = when_ns

    def run_for(self, delay_ns: int) -> None:
        self.run_until(self.now_ns + delay_ns)

    def run_while(self, condition: Callable[[], bool], until_ns: int) -> bool:
        """Run events while `condition()` holds. False if it still held at `until_ns`, or when no event was left."""
        while condition():
            if not self.step(until_ns):
                return False
        return True

    def run_until_any(self, found: Sized, until_ns: int) -> bool:
        """Run events until `found` holds something. False if it is still empty then, as for `run_while`."""
        while not found:
            if not self.step(until_ns):
                return False
        return True

    def on_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > _CANCELLED_KEPT and self._cancelled * 2 > len(self._later):
            self._later = [entry for entry in self._later if entry[2].function is not None]
            heapq.heapify(self._later)
            self._cancelled = 0

    def _drop_cancelled(self) -> None:
        later, now = self._later, self._now
        while later and later[0][2].function is None:
            heapq.heappop(later)
        while now and now[0].function is None:
            now.popleft()
