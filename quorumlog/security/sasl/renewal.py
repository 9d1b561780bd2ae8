"""When a client renews its token, and when it logs in again on a connection. Pure: a shell with a timer asks.

A token is renewed whether or not anybody polls, so that an idle client does not come back with a token that has ended.
While the endpoint is down the client goes on trying, also after its token's end. Settings and their meaning are Kafka's
(`sasl.login.refresh.*`, ExpiringCredentialRefreshingLogin; `sasl.login.retry.backoff.*`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.security.sasl.token_request import BearerToken

LOOK_AGAIN_MS = 60_000  # at a source whose token tells no end: a file may have been replaced
MIN_WAIT_MS = 1_000  # between two renewals, however short tokens live
_FIRST, _SPREAD = 0.85, 0.10  # of a session's lifetime, as Kafka's client logs in again


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


def login_again_ms(lifetime_ms: int, fraction: float) -> int | None:
    """So long after a login a client logs in again on the same connection (KIP-368). lifetime_ms: as the server told
    it; None: it told 0, and the session has no end. fraction: from 0 to below 1."""
    return int(lifetime_ms * (_FIRST + _SPREAD * fraction)) if lifetime_ms > 0 else None
