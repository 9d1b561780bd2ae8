"""Virtual time: one queue of events for the whole simulated cluster.

Time is an integer of nanoseconds and advances only when no event is left at the current time. Events at the same time
run in the order in which they were scheduled. Each concern has its own random generator, derived from the seed and the
concern's name, so that a new draw in one place does not change the others (RELIABILITY 6.5, 41).
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import deque
from collections.abc import Callable

from jepsen.sim.trace import Trace

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_SEED_BYTES = 16
_CANCELLED_KEPT = 1_000  # cancelled timers are removed when there are more than these and they are half of all


class Timer:
    """An event that will happen once. `when_ns` is virtual time."""

    __slots__ = ("_scheduler", "function", "sequence", "when_ns")

    def __init__(self, scheduler: Scheduler, when_ns: int, sequence: int, function: Callable[[], None]) -> None:
        self._scheduler, self.when_ns, self.sequence = scheduler, when_ns, sequence
        self.function: Callable[[], None] | None = function  # None: done or cancelled

    def cancel(self) -> None:
        """Idempotent. No effect after the event has happened."""
        if self.function is not None:
            self.function = None
            self._scheduler.on_cancelled()

    def __lt__(self, other: Timer) -> bool:
        return (self.when_ns, self.sequence) < (other.when_ns, other.sequence)


class Scheduler:
    """Not re-entrant: an event may schedule others, but must not run the scheduler."""

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        self.seed = seed
        self.now_ns = 0
        self.steps = 0  # number of events so far
        self.trace = trace or Trace()
        self._later: list[Timer] = []
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
        self._sequence += 1
        timer = Timer(self, max(when_ns, self.now_ns), self._sequence, function)
        if timer.when_ns == self.now_ns:
            self._now.append(timer)
        else:
            heapq.heappush(self._later, timer)
        return timer

    def call_later(self, delay_ns: int, function: Callable[[], None]) -> Timer:
        assert delay_ns >= 0, delay_ns
        return self.call_at(self.now_ns + delay_ns, function)

    def next_ns(self) -> int | None:
        """When the next event is due; None if no event is left."""
        self._drop_cancelled()
        if self._now:
            return self.now_ns
        return self._later[0].when_ns if self._later else None

    def step(self) -> bool:
        """Run the next event, advancing time if necessary. False if no event is left."""
        assert not self._running, "the scheduler runs already"
        self._drop_cancelled()
        if self._later and (not self._now or self._later[0].when_ns == self.now_ns):
            timer = heapq.heappop(self._later)
        elif self._now:
            timer = self._now.popleft()
        else:
            return False
        assert timer.when_ns >= self.now_ns, "time went back"
        self.now_ns = timer.when_ns
        self.steps += 1
        self._run(timer)
        return True

    def run_until(self, when_ns: int) -> None:
        """Run all events due up to and including `when_ns`, then set the time to `when_ns`."""
        assert when_ns >= self.now_ns
        while (due_ns := self.next_ns()) is not None and due_ns <= when_ns:
            self.step()
        self.now_ns = when_ns

    def run_for(self, delay_ns: int) -> None:
        self.run_until(self.now_ns + delay_ns)

    def run_while(self, condition: Callable[[], bool], until_ns: int) -> bool:
        """Run events while `condition()` holds. False if it still held at `until_ns`, or when no event was left."""
        while condition():
            due_ns = self.next_ns()
            if due_ns is None or due_ns > until_ns:
                return False
            self.step()
        return True

    def on_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > _CANCELLED_KEPT and self._cancelled * 2 > len(self._later):
            self._later = [timer for timer in self._later if timer.function is not None]
            heapq.heapify(self._later)
            self._cancelled = 0

    def _run(self, timer: Timer) -> None:
        function, timer.function = timer.function, None
        assert function is not None
        self._running = True
        try:
            function()
        finally:
            self._running = False

    def _drop_cancelled(self) -> None:
        while self._later and self._later[0].function is None:
            heapq.heappop(self._later)
        while self._now and self._now[0].function is None:
            self._now.popleft()
