"""Who is held back together, until when, and what is remembered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.security.quota import clients
from quorumlog.security.quota.clients import MAX_WAIT_MS, ClientUse
from quorumlog.security.quota.entity import Entity
from quorumlog.security.quota.rate import KEPT_MS
from quorumlog.security.quota.resolution import index_of
from tests.rules import rule

KEY = "producer_byte_rate"
USER: Entity = (("user", "a"),)
PAIR: Entity = (("client-id", None), ("user", "a"))


def uses(*quotas: tuple[Entity, float]) -> ClientUse:
    index = index_of((entity, KEY, value) for entity, value in quotas)
    return ClientUse(lambda: index)


def test_all_clients_of_a_user_share_its_quota() -> None:
    found = uses((USER, 100.0))
    assert found.use(KEY, "a", "c1", 900, 0) == 0
    assert found.use(KEY, "a", "c2", 900, 0) == 8_000
    assert found.wait_ms(KEY, "a", "c3", 500) == 7_500 and found.wait_ms(KEY, "b", "c1", 500) == 0
    assert len(found) == 1


def test_a_users_default_for_clients_is_for_each_of_them() -> None:
    found = uses((PAIR, 100.0))
    assert found.use(KEY, "a", "c1", 1_800, 0) == 8_000
    assert found.use(KEY, "a", "c2", 900, 0) == 0 and len(found) == 2


def test_who_is_not_limited_is_not_remembered() -> None:
    found = uses((USER, 100.0))
    for number in range(100):
        assert found.use(KEY, "b", f"c{number}", 10**9, number) == 0
    assert len(found) == 0 and found.most(KEY, "b", "c", 100) is None and found.most(KEY, "a", "c", 100) == 1_000


def test_buckets_of_clients_that_are_gone_are_forgotten() -> None:
    found = uses((PAIR, 100.0))
    for number in range(500):
        found.use(KEY, "a", f"c{number}", 1, 1)
    assert found.use(KEY, "a", "slow", 100_000, 1) == 990_000
    found.use(KEY, "a", "last", 1, 2 * KEPT_MS)
    assert len(found) == 2 and found.wait_ms(KEY, "a", "slow", 2 * KEPT_MS) > 0


def test_buckets_of_ids_that_clients_make_up_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket that waits is kept for up to an hour, and each request may name another id."""
    monkeypatch.setattr(clients, "MAX_BUCKETS", 10)
    found = uses((PAIR, 1.0))
    for number in range(50):
        assert found.use(KEY, "a", f"c{number}", 10**9, 1) == MAX_WAIT_MS
    assert len(found) == 10
    assert found.wait_ms(KEY, "a", "c49", 1) == MAX_WAIT_MS and found.wait_ms(KEY, "a", "c0", 1) == 0


def test_long_ids_with_the_same_begin_share_a_bucket() -> None:
    found = uses((PAIR, 1.0))
    for end in "ab":
        assert found.use(KEY, "a", "c" * 100_000 + end, 10**9, 1) == MAX_WAIT_MS
    assert found.wait_ms(KEY, "a", "c" * 100_000, 1) == MAX_WAIT_MS and len(found) == 1
    assert all(len(client_id or "") <= clients.MAX_ID_CHARACTERS for _, (_, client_id) in found._uses)


def test_no_wait_is_longer_than_an_hour() -> None:
    assert uses((USER, 1.0)).use(KEY, "a", "c", 10**9, 0) == MAX_WAIT_MS


def test_a_raised_quota_counts_from_the_next_use() -> None:
    index = index_of([(USER, KEY, 100.0)])
    found = ClientUse(lambda: index)
    found.use(KEY, "a", "c", 1_800, 0)
    index.put(USER, KEY, 1_000.0)
    assert found.use(KEY, "a", "c", 0, 0) == 0 and found.wait_ms(KEY, "a", "c", 0) == 0


STEPS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["c", "d"]), st.integers(0, 3_000), st.integers(0, 9_000)),
    max_size=40,
)


@settings(max_examples=100)
@given(STEPS)
@rule("security 1.22")
def test_who_waits_for_its_deadline_is_served(steps: list[Any]) -> None:
    """Invariant 22 of security, for the client that was told: others of its bucket may be told a later one."""
    found, now = uses((USER, 100.0), ((("client-id", None),), 50.0)), 0
    for user, client, after, amount in steps:
        now += after
        wait = found.use(KEY, user, client, amount, now)
        assert found.wait_ms(KEY, user, client, now + wait) == 0
        assert wait == 0 or found.wait_ms(KEY, user, client, now + wait - 1) == 1


def greedy(found: ClientUse, size: int, until_ms: int, answers_ms: int = 7) -> list[tuple[int, int]]:
    """What a client gets that asks again as soon as it may: when, and how much."""
    got, now = [], 0
    while now < until_ms:
        most = found.most(KEY, "a", "c", now)
        assert most is not None
        amount = int(min(size, most))
        got.append((now, amount))
        now += found.use(KEY, "a", "c", amount, now) + answers_ms
    return got


@pytest.mark.parametrize("size", [100, 700, 1_000, 3_000, 1_000_000])
def test_who_asks_for_all_that_it_may_gets_its_quota_evenly(size: int) -> None:
    """Kafka's window lets ten seconds' worth through each eleven: 110 % in some half minutes, and others feel it."""
    got = greedy(uses((USER, 1_000.0)), size, 120_000)
    one = min(size, 1_000)
    for begins in range(40_000, 90_000, 1_100):  # what the burst has cost is paid by then
        in_30_s = sum(amount for at, amount in got if begins <= at < begins + 30_000)
        assert 0.95 * 30_000 - one <= in_30_s <= 1.05 * 30_000 + one
        in_2_s = sum(amount for at, amount in got if begins <= at < begins + 2_000)
        assert in_2_s <= 3_000 + one


def test_a_paced_bucket_that_rests_may_burst_again() -> None:
    found = uses((USER, 1_000.0))
    assert found.use(KEY, "a", "c", 10_500, 0) == 500
    assert found.most(KEY, "a", "c", 500) == 1_000
    rests = 500 + KEPT_MS
    assert found.most(KEY, "a", "c", rests) == 10_000 and found.use(KEY, "a", "c", 10_000, rests) == 0


def test_clients_that_are_held_back_are_told_once_and_when_they_are_free() -> None:
    found, told = uses((USER, 100.0)), []
    found.told = lambda *what: told.append(what)
    for now_ms in (0, 10, 20):
        found.use(KEY, "a", "c1", 2_000, now_ms)
    assert [one[:2] for one in told] == [("quota.throttled", "client/a")]
    found.use(KEY, "a", "c1", 1, 20 * KEPT_MS)
    assert [one[0] for one in told] == ["quota.throttled", "quota.released"]
