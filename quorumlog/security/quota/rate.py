"""What a bucket has used in the last seconds, and how long it has to wait (Kafka's Rate and SampledStat, KIP-13).

Use is counted in samples of one second; a sample begins with the first use behind the end of the one before. Eleven of
them are kept. The time that they stand for is that since the oldest one began, and at least ten seconds and the part
of the current one: a client that has just come may burst for ten seconds' worth.
"""

from __future__ import annotations

from collections import deque

SAMPLE_MS = 1_000
SAMPLES = 11
BURST_S = SAMPLES - 1  # seconds' worth of a quota that may be used at once
KEPT_MS = SAMPLES * SAMPLE_MS  # after that the oldest one is forgotten
_LONGEST_MS = 2**53  # a whole number as a float, and longer than anybody waits


def whole_ms(wait_ms: float) -> int:
    """A quota is any double above 0: what is divided by it may be infinite, and so may what it lets be used."""
    return round(min(max(0.0, wait_ms), _LONGEST_MS))


class Rate:
    """Times come from a clock that does not run back; a time before the last one counts as the last one."""

    __slots__ = ("_now_ms", "_samples")

    def __init__(self) -> None:
        self._samples: deque[list[float]] = deque()  # when each began, what was used
        self._now_ms = 0

    def use(self, amount: float, now_ms: int) -> None:
        """amount: also 0, which begins a sample."""
        now_ms = self._forget(now_ms)
        if self._samples and now_ms - self._samples[-1][0] < SAMPLE_MS:
            self._samples[-1][1] += amount
        else:
            self._samples.append([now_ms, amount])

    def wait_ms(self, limit: float, now_ms: int) -> int:
        """How long to hold back who has used more than the limit (above 0, in amounts a second); 0: it has not.

        As Kafka: (use / window - limit) / limit x window. At the end of a second the window shrinks, so whoever has
        waited may be a little above its limit still. It is served all the same, and pays for both after.
        """
        now_ms = self._forget(now_ms)
        if not self._samples:
            return 0
        return whole_ms(self._used() / limit * 1000 - self._window_ms(now_ms))

    def a_second(self, now_ms: int) -> float:
        """What was used a second, over the time that the samples stand for."""
        return self.a_second_as_seen(self._forget(now_ms))

    def a_second_as_seen(self, now_ms: int) -> float:
        """The same. It only reads, so any thread may ask."""
        samples = [one for one in list(self._samples) if now_ms - one[0] < KEPT_MS]
        used = sum(amount for _, amount in samples)
        return used * 1000 / _window_ms(samples[0][0], now_ms) if samples else 0.0

    def _used(self) -> float:
        return sum(amount for _, amount in self._samples)

    def _window_ms(self, now_ms: int) -> float:
        return _window_ms(self._samples[0][0], now_ms)

    def is_idle(self, now_ms: int) -> bool:
        """Nothing that it remembers counts any more."""
        self._forget(now_ms)
        return not self._samples

    def _forget(self, now_ms: int) -> int:
        self._now_ms = now_ms = max(now_ms, self._now_ms)
        while self._samples and now_ms - self._samples[0][0] >= KEPT_MS:
            self._samples.popleft()
        return now_ms


def _window_ms(began_ms: float, now_ms: int) -> float:
    elapsed_ms = now_ms - began_ms
    return elapsed_ms + max(0, BURST_S - elapsed_ms // SAMPLE_MS) * SAMPLE_MS
