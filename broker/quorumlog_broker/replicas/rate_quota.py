"""Bytes per second as a balance that fills with time. Pure.

It fills at the rate, up to what BURST_MS bring. Whoever may take takes what there is, and may overdraw it by the last
batch, because batches are not divided. Nothing may be taken until there is as much as PORTION_MS bring: so a throttled
partition is looked at a few times a second, however slow the rate and however small its batches.

What may not wait is spent, too, and never makes a debt of more than DEBT_MS: else hours of traffic above the rate would
hold everything else back for hours afterwards. (Kafka forgets what was sent before its windows, 11 s by default.)

Between two moments at most rate × time + burst + what was overdrawn passes, and a greedy taker gets the rate.
"""

from __future__ import annotations

from quorumlog.throttle_settings import NO_RATE

BURST_MS = 1_000
PORTION_MS = 100
DEBT_MS = 10_000
LONGEST_DELAY_MS = 1_000  # a rate that is raised is noticed after so long


class RateQuota:
    def __init__(self) -> None:
        self._rate = NO_RATE  # bytes per second
        self._balance = 0.0  # bytes; negative: overdrawn
        self._at_ms = 0

    @property
    def is_on(self) -> bool:
        return self._rate != NO_RATE

    def set_rate(self, rate: int, now_ms: int) -> None:
        """rate: bytes per second; NO_RATE: no limit. A new limit begins with an empty balance."""
        if rate == self._rate:
            return
        self._fill(now_ms)
        self._balance = min(self._balance, 0.0) if self.is_on else 0.0
        self._rate, self._at_ms = rate, now_ms

    def left_bytes(self, now_ms: int) -> int:
        """What may be taken now; 0: nothing yet, `delay_ms` says when."""
        self._fill(now_ms)
        return int(self._balance) if self._balance >= self._portion else 0

    def delay_ms(self, now_ms: int) -> int:
        """How long nothing may be taken; 0: something may be taken now. At most LONGEST_DELAY_MS."""
        if self.left_bytes(now_ms):
            return 0
        if self._rate == 0:
            return LONGEST_DELAY_MS
        missing = self._portion - self._balance
        return max(1, min(LONGEST_DELAY_MS, int(missing * 1000 / self._rate) + 1))

    def spend(self, size_bytes: int, now_ms: int) -> None:
        if self.is_on:
            self._fill(now_ms)
            self._balance -= size_bytes

    def spend_unasked(self, size_bytes: int, now_ms: int) -> None:
        """What passes whatever the balance is."""
        if self.is_on:
            self._fill(now_ms)
            lowest = min(self._balance, -self._rate * DEBT_MS / 1000)
            self._balance = max(lowest, self._balance - size_bytes)

    @property
    def _portion(self) -> float:
        return max(1.0, self._rate * PORTION_MS / 1000)

    def _fill(self, now_ms: int) -> None:
        if not self.is_on:
            return
        passed_ms = max(0, now_ms - self._at_ms)
        self._at_ms = max(self._at_ms, now_ms)
        self._balance = min(max(1.0, self._rate * BURST_MS / 1000), self._balance + self._rate * passed_ms / 1000)
