"""Use in samples, beside a second answer that keeps every use; tokens, beside one that counts time in steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.security.quota.rate import BURST_S, KEPT_MS, Rate
from quorumlog.security.quota.tokens import TokenBucket
from tests.rules import rule

T = 1_000.0  # a second


class Oracle:
    """Every use since the beginning; samples are found anew at each question."""

    def __init__(self) -> None:
        self.uses: list[tuple[int, float]] = []

    def samples(self, now: int) -> list[list[float]]:
        found: list[list[float]] = []
        for at, amount in self.uses:
            if found and at - found[-1][0] < 1_000:
                found[-1][1] += amount
            else:
                found.append([at, amount])
        return [one for one in found if now - one[0] < 11_000]

    def excess_ms(self, now: int) -> float:
        """Kafka's: (O - T) / T * W."""
        samples = self.samples(now)
        if not samples:
            return 0
        elapsed = now - samples[0][0]
        missing = max(0, 10 - elapsed // 1_000)
        window = (elapsed + 1_000 * missing) / 1000
        rate = sum(amount for _, amount in samples) / window
        return max(0.0, (rate - T) / T * window * 1000)


STEPS = st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 20_000)), max_size=40)


@settings(max_examples=100)
@given(STEPS)
@rule("security 1.21")
def test_waits_agree_with_an_oracle_that_keeps_all(steps: list[tuple[int, int]]) -> None:
    rate, oracle, now = Rate(), Oracle(), 5
    for after, amount in steps:
        now += after
        rate.use(amount, now)
        oracle.uses.append((now, amount))
        assert abs(rate.wait_ms(T, now) - oracle.excess_ms(now)) <= 1


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 1_500), st.integers(1, 50_000)), min_size=1, max_size=40), st.integers(0, 999))
@rule("security 1.21")
def test_who_asks_when_there_is_nothing_to_wait_for_gets_its_quota_and_one_request(
    requests: list[tuple[int, int]], start: int
) -> None:
    """Invariant 21 of security: in a window no more than quota x window, and one request."""
    rate, oracle, now = Rate(), Oracle(), start
    for after, size in requests:
        now += after
        while wait := rate.wait_ms(T, now):
            now += wait
        samples = oracle.samples(now)
        window_s = max(BURST_S + 1, (now - samples[0][0]) / 1000) if samples else 0
        assert sum(amount for _, amount in samples) <= T * window_s + 1
        rate.use(size, now)
        oracle.uses.append((now, size))


@pytest.mark.parametrize(
    ("used", "want_ms"),
    [(0, 0), (10_000, 0), (10_001, 1), (20_000, 10_000), (1_000_000, 990_000)],
)
def test_a_newcomer_may_burst_for_ten_seconds(used: int, want_ms: int) -> None:
    rate = Rate()
    rate.use(used, 7)
    assert rate.wait_ms(T, 7) == want_ms


def test_what_is_old_does_not_count_and_a_clock_that_falls_back_adds_nothing() -> None:
    rate = Rate()
    rate.use(50_000, 100_000)
    assert rate.wait_ms(T, 0) == rate.wait_ms(T, 100_000) == 40_000
    assert not rate.is_idle(100_000 + KEPT_MS - 1)
    assert rate.is_idle(100_000 + KEPT_MS) and rate.wait_ms(T, 100_000 + KEPT_MS) == 0


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(-500, 5_000), st.integers(0, 60)), max_size=30), st.sampled_from([0.5, 2.0, 10.0])
)
@rule("security 1.25")
def test_tokens_agree_with_counting_and_never_exceed_the_burst(steps: Any, limit: float) -> None:
    """Invariant 25 of security, clock jumps or not."""
    bucket, tokens, last, now = TokenBucket(), 11 * limit, 0, 0
    for after, amount in steps:
        now += after
        tokens, last = min(11 * limit, tokens + max(0, now - last) / 1000 * limit), max(now, last)
        assert tokens <= 11 * limit
        wait = bucket.wait_ms(limit, now)
        assert abs(wait - max(0.0, -tokens / limit * 1000)) <= 1
        assert bucket.is_full(limit, now) == (tokens >= 11 * limit)
        if wait == 0:
            bucket.spend(amount, limit, now)
            tokens -= amount


def test_no_request_is_too_large_for_ever() -> None:
    bucket = TokenBucket()
    assert bucket.wait_ms(2.0, 0) == 0
    bucket.spend(1_000, 2.0, 0)
    assert bucket.wait_ms(2.0, 0) == 489_000  # (1,000 - 22) / 2 s
    assert bucket.wait_ms(2.0, 488_999) == 1 and bucket.wait_ms(2.0, 489_000) == 0


def test_a_smaller_quota_caps_what_was_saved() -> None:
    bucket = TokenBucket()
    bucket.spend(0, 10.0, 0)
    bucket.spend(12, 1.0, 0)
    assert bucket.wait_ms(1.0, 0) == 1_000


@pytest.mark.parametrize("limit", [5e-324, 1e-300, 1e300, 1.7976931348623157e308])
def test_a_quota_may_be_any_number_above_0(limit: float) -> None:
    """Kafka's tools take any double, and people write the largest one for no limit."""
    rate, bucket = Rate(), TokenBucket()
    rate.use(5, 0)
    bucket.spend(50, limit, 0)
    assert bucket.is_full(limit, 0) == (limit > 1)
    for wait_ms in (rate.wait_ms(limit, 1), bucket.wait_ms(limit, 1)):
        assert (wait_ms == 0) if limit > 1 else (3_600_000 < wait_ms <= 2**53)
