"""When a client renews the token of an endpoint. Pure: each login asks, also those that renew a connection's.

While the endpoint is down the client goes on trying, also after its token's end. Settings and their meaning are Kafka's
(`sasl.login.refresh.*`, ExpiringCredentialRefreshingLogin; `sasl.login.retry.backoff.*`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.security.sasl.token_request import BearerToken

LOOK_AGAIN_MS = 60_000  # after a token that tells no end
MIN_WAIT_MS = 1_000  # between two renewals, however short tokens live


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalRules:
    """window_factor: part of a token's life after which it is renewed; window_jitter: at most so much of it later.
    min_period_ms after the last renewal and buffer_ms before the end are kept, if the token lives long enough for
    both."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_ms: int = 60_000
    buffer_ms: int = 300_000
    retry_ms: int = 100
    max_retry_ms: int = 10_000


class Renewal:
    """fraction: random numbers from 0 to below 1. token: the newest one, also one that has ended.

    due_ms: Unix time at which to fetch the next one.
    """

    def __init__(self, rules: RenewalRules, fraction: Callable[[], float]) -> None:
        self._rules, self._fraction = rules, fraction
        self._failures = 0
        self.token: BearerToken | None = None
        self.due_ms = 0

    def fetched(self, token: BearerToken, now_ms: int) -> None:
        self.token, self._failures = token, 0
        self.due_ms = max(now_ms + MIN_WAIT_MS, self._next_ms(token, now_ms))

    def _next_ms(self, token: BearerToken, now_ms: int) -> int:
        if token.expires_ms is None:
            return now_ms + LOOK_AGAIN_MS
        rules, life_ms = self._rules, token.expires_ms - now_ms
        part = rules.window_factor + rules.window_jitter * self._fraction()
        at_ms = now_ms + int(life_ms * part)
        if life_ms < rules.min_period_ms + rules.buffer_ms:
            return at_ms
        return max(now_ms + rules.min_period_ms, min(at_ms, token.expires_ms - rules.buffer_ms))

    def failed(self, now_ms: int) -> None:
        """No token came. The next try is later each time, and a fifth earlier or later than that."""
        wait_ms = min(self._rules.max_retry_ms, self._rules.retry_ms << min(self._failures, 30))
        self._failures += 1
        self.due_ms = now_ms + max(1, int(wait_ms * (0.8 + 0.4 * self._fraction())))

    def usable(self, now_ms: int) -> BearerToken | None:
        """The token, if it has not ended."""
        token = self.token
        return token if token is not None and (token.expires_ms is None or now_ms < token.expires_ms) else None
