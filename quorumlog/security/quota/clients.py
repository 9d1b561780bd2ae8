"""What each bucket of clients uses on this broker, and how long its clients are held back.

A client is held back by its bucket's deadline: it is served once that has come, whatever others of the bucket have used
meanwhile, so no quota above 0 starves anybody. Buckets of clients that are gone are forgotten. Nothing is kept for
clients without a quota. A client chooses its id, so there are MAX_BUCKETS, and ids with the same long begin share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import nlargest
from typing import NamedTuple

from quorumlog.security.quota.entity import REQUEST_PERCENTAGE
from quorumlog.security.quota.rate import BURST_S, KEPT_MS, SAMPLE_MS, Rate
from quorumlog.security.quota.resolution import Bucket, QuotaIndex

MAX_BUCKETS = 50_000  # the one that began first is forgotten, as if it had used nothing
MAX_ID_CHARACTERS = 256  # of a client's id, by which buckets are told apart
MAX_WAIT_MS = 3_600_000  # Kafka waits for any time; a client that has asked for a day is asked again after an hour

MAX_TIME_WAIT_MS = SAMPLE_MS  # for the time of the loop, as in Kafka: it is told to everybody and cannot be planned


class Use(NamedTuple):
    """Of one bucket: what it has used a second, of which quota, and for how long its clients were held back."""

    key: str
    bucket: Bucket
    rate: float
    quota: float
    throttled_ms: int


class _Use:
    """free_ms: before that its clients wait. quota: when it was used last."""

    __slots__ = ("free_ms", "quota", "rate", "throttled_ms")

    def __init__(self) -> None:
        self.rate, self.free_ms, self.quota, self.throttled_ms = Rate(), 0, 0.0, 0


_Item = tuple[tuple[str, Bucket], _Use]


class ClientUse:
    """Of rates that are counted in samples: bytes, and time."""

    def __init__(self, index: Callable[[], QuotaIndex]) -> None:
        """index: of the quotas in force. Asked at each use."""
        self._index = index
        self._uses: dict[tuple[str, Bucket], _Use] = {}
        self._swept_ms = 0
        self.throttled_ms: Counter[str] = Counter()  # by key, of all clients since the start

    def use(self, key: str, user: str, client_id: str, amount: float, now_ms: int) -> int:
        """Count it. Returns for how many ms the client is to be held back; 0: it is not."""
        limit = self._index().limit(key, user, client_id)
        if limit is None:
            return 0
        self._sweep(now_ms)
        place = place_of(key, limit.bucket)
        found = self._uses.get(place)
        if found is None:
            if len(self._uses) >= MAX_BUCKETS:
                del self._uses[next(iter(self._uses))]
            found = self._uses[place] = _Use()
        found.rate.use(amount, now_ms)
        most_ms = MAX_TIME_WAIT_MS if key == REQUEST_PERCENTAGE else MAX_WAIT_MS
        wait_ms = min(most_ms, found.rate.wait_ms(limit.value, now_ms))
        more_ms = max(0, now_ms + wait_ms - max(now_ms, found.free_ms))
        found.throttled_ms += more_ms
        self.throttled_ms[key] += more_ms
        found.free_ms, found.quota = now_ms + wait_ms, limit.value
        return wait_ms

    def most_used(self, count: int, now_ms: int) -> list[Use]:
        """So many of those that use most of their quota, the first one most."""
        return nlargest(count, self.uses(now_ms), key=lambda use: use.rate / use.quota)

    def uses(self, now_ms: int, each: Callable[[Collection[_Item]], Iterable[_Item]] = list) -> Iterator[Use]:
        """Of every bucket. It only reads, so any thread may ask. each: goes over a copy of them."""
        for (key, bucket), one in each(self._uses.items()):
            yield Use(key, bucket, one.rate.a_second_as_seen(now_ms), one.quota, one.throttled_ms)

    def wait_ms(self, key: str, user: str, client_id: str, now_ms: int) -> int:
        """For how long the client is held back for what its bucket has used already. Nothing is counted."""
        limit = self._index().limit(key, user, client_id)
        found = None if limit is None else self._uses.get(place_of(key, limit.bucket))
        return 0 if found is None else max(0, found.free_ms - now_ms)

    def most(self, key: str, user: str, client_id: str) -> float | None:
        """What one request may use of a rate: ten seconds' worth. None: there is no quota."""
        limit = self._index().limit(key, user, client_id)
        return None if limit is None else limit.value * BURST_S

    def __len__(self) -> int:
        """Buckets that are remembered."""
        return len(self._uses)

    def _sweep(self, now_ms: int) -> None:
        """At most once in the time for which a use is kept: what it costs is shared by the uses between."""
        if now_ms - self._swept_ms < KEPT_MS:
            return
        self._swept_ms = now_ms
        for key in [key for key, one in self._uses.items() if one.free_ms <= now_ms and one.rate.is_idle(now_ms)]:
            del self._uses[key]


def place_of(key: str, bucket: Bucket) -> tuple[str, Bucket]:
    """Where the use of a bucket is kept."""
    user, client_id = bucket
    if client_id is not None and len(client_id) > MAX_ID_CHARACTERS:
        return key, (user, client_id[:MAX_ID_CHARACTERS])
    return key, bucket
