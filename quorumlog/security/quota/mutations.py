"""How many partitions each bucket of clients may still make and delete (KIP-599).

For each request of a client there are `Permits`. A strict one refuses what comes while there is a debt; for a client
that does not know that error everything is done, and the client is held back after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.security.quota.clients import MAX_BUCKETS, MAX_WAIT_MS, place_of
from quorumlog.security.quota.entity import CONTROLLER_MUTATION_RATE
from quorumlog.security.quota.resolution import Limit, QuotaIndex
from quorumlog.security.quota.tokens import BURST_S, TokenBucket


class Permits(Protocol):
    """Of one request."""

    def spend(self, name: str, partitions: int, now_ms: int) -> None:
        """For the topic of that name; a second time costs nothing. Raises ApiError(THROTTLING_QUOTA_EXCEEDED)."""


class Unlimited:
    """`Permits` of who has no quota."""

    def spend(self, name: str, partitions: int, now_ms: int) -> None: ...


UNLIMITED = Unlimited()


class Limited:
    """`Permits`. wait_ms: for how long the client is to be held back."""

    def __init__(self, bucket: TokenBucket, limit: Limit, *, strict: bool) -> None:
        self._bucket, self._limit, self._strict = bucket, limit.value, strict
        self._paid: set[str] = set()
        self.wait_ms = 0

    def spend(self, name: str, partitions: int, now_ms: int) -> None:
        if name in self._paid:
            return
        if self._strict and (wait_ms := self._bucket.wait_ms(self._limit, now_ms)):
            self.wait_ms = min(MAX_WAIT_MS, wait_ms)
            quota = f"the quota of {self._limit:g} partitions a second (controller_mutation_rate)"
            text = f"{quota} is used up; try again in {wait_ms} ms"
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, text)
        self._bucket.spend(partitions, self._limit, now_ms)
        self._paid.add(name)
        if not self._strict:
            self.wait_ms = min(MAX_WAIT_MS, self._bucket.wait_ms(self._limit, now_ms))


class MutationUse:
    """Of one controller. Buckets that are full again are forgotten, and so is the one that began first where there are
    too many."""

    def __init__(self, index: Callable[[], QuotaIndex]) -> None:
        self._index = index
        self._buckets: dict[object, tuple[TokenBucket, float]] = {}  # and the rate by which it was used last
        self._swept_ms = 0

    def permits(self, user: str, client_id: str, now_ms: int, *, strict: bool) -> Limited | None:
        """None: the client has no quota."""
        limit = self._index().limit(CONTROLLER_MUTATION_RATE, user, client_id)
        if limit is None:
            return None
        self._sweep(now_ms)
        place = place_of(CONTROLLER_MUTATION_RATE, limit.bucket)
        found = self._buckets.get(place)
        if found is None and len(self._buckets) >= MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        bucket = TokenBucket() if found is None else found[0]
        self._buckets[place] = bucket, limit.value
        return Limited(bucket, limit, strict=strict)

    def __len__(self) -> int:
        """Buckets that are remembered."""
        return len(self._buckets)

    def _sweep(self, now_ms: int) -> None:
        """At most once in the time in which an empty bucket fills up."""
        if now_ms - self._swept_ms < BURST_S * 1000:
            return
        self._swept_ms = now_ms
        for place in [place for place, (bucket, rate) in self._buckets.items() if bucket.is_full(rate, now_ms)]:
            del self._buckets[place]
