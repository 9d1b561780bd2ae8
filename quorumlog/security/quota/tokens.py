"""The rate of changes that a client asks of the controller, as a bucket of tokens (KIP-599, Kafka's TokenBucket).

A token is one partition that is made or deleted. The bucket gets as many tokens a second as the quota says, and holds
those of eleven seconds. A request is taken while there is no debt, whatever it costs, so that none is too large for
ever; it may leave a debt. While there is one, strict requests are refused.
"""

from __future__ import annotations

from quorumlog.security.quota.rate import SAMPLES, whole_ms

BURST_S = SAMPLES


class TokenBucket:
    """Full at first. A time before the last one counts as the last one."""

    __slots__ = ("_now_ms", "_tokens")

    def __init__(self) -> None:
        self._tokens: float | None = None  # None: full
        self._now_ms = 0

    def wait_ms(self, limit: float, now_ms: int) -> int:
        """Until there is no debt; 0: there is none. limit: tokens a second, above 0."""
        tokens = self._fill(limit, now_ms)
        return whole_ms(-tokens / limit * 1000)

    def spend(self, amount: float, limit: float, now_ms: int) -> None:
        """amount: at least 0. Whether it is allowed, the caller has asked before."""
        self._tokens = self._fill(limit, now_ms) - amount

    def _fill(self, limit: float, now_ms: int) -> float:
        burst = BURST_S * limit
        now_ms = max(now_ms, self._now_ms)
        tokens = burst if self._tokens is None else self._tokens + (now_ms - self._now_ms) / 1000 * limit
        self._tokens, self._now_ms = min(burst, tokens), now_ms
        return self._tokens

    def is_full(self, limit: float, now_ms: int) -> bool:
        return self._fill(limit, now_ms) >= BURST_S * limit
