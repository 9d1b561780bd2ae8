"""How many connections come in a second: what is counted, who waits, who is turned away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.security.quota import arrivals
from quorumlog.security.quota.arrivals import Arrivals
from quorumlog.security.quota.resolution import QuotaIndex, index_of
from tests.rules import rule

RATE = "connection_creation_rate"
INDEX = index_of([((("ip", "10.0.0.1"),), RATE, 2.0), ((("ip", None),), RATE, 3.0)])
NOTHING = QuotaIndex()


def node(index: QuotaIndex = NOTHING, of_node: int | None = None, **of_listeners: int) -> Arrivals:
    return Arrivals(lambda: index, lambda: of_node, of_listeners.get)


def test_what_bounds_nothing_counts_nothing() -> None:
    found = node()
    assert not found.limits("A") and found.of_address("10.0.0.1", 0) == found.turn("A", 0) == 0 and len(found) == 0
    assert node(INDEX).limits("A") and node(of_node=5).limits("A")
    assert node(A=5).limits("A") and not node(A=5).limits("B")


@rule("security 1.23")
def test_an_address_is_turned_away_without_being_counted() -> None:
    found = node(INDEX)
    assert [found.of_address("10.0.0.1", 0) for _ in range(20)] == [0] * 20
    assert [found.of_address("10.0.0.1", 0) for _ in range(50)] == [500] * 50, "the 21st, each time"
    assert [found.of_address("10.0.0.2", 0) for _ in range(31)] == [0] * 30 + [333]
    assert found.of_address("10.0.0.1", 11_000) == 0


@given(st.lists(st.tuples(st.integers(0, 2_000), st.booleans()), max_size=60))
@rule("security 1.23")
def test_uncounting_restores_the_sum(steps: list[tuple[int, bool]]) -> None:
    """Invariant 23 of security: who was turned away leaves nothing behind."""
    found, other, now = node(INDEX), node(INDEX), 0
    for after, comes_often in steps:
        now += after
        wait = found.of_address("10.0.0.1", now)
        for _ in range(5 * comes_often if wait else 0):  # it is refused again and again
            assert found.of_address("10.0.0.1", now) == wait
        assert (other.of_address("10.0.0.1", now) > 0) == (wait > 0)


def test_turns_above_the_rate_are_one_behind_the_other() -> None:
    """A window of eleven seconds is as long as in Kafka: after a burst there are fewer for a while."""
    found, now = node(of_node=5), 0
    for number in range(1, 200):
        wait = found.turn("A", now)
        now += wait
        assert wait <= 1_000 and number <= 50 + 5 * now / 1000
    assert now < 60_000


def test_a_listener_has_a_rate_of_its_own_beside_that_of_the_node() -> None:
    found = node(of_node=10, A=1)
    assert [found.turn("A", 0) for _ in range(11)] == [0] * 10 + [1_000]
    assert [found.turn("B", 0) for _ in range(90)][-2:] == [0, 100]


def test_addresses_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MAX_BUCKETS", 10)
    found = node(INDEX)
    for number in range(50):
        found.of_address(f"10.1.0.{number}", 1)
    assert len(found) == 10
    found.of_address("10.2.0.1", 30_000)
    assert len(found) == 1
