"""How the intervals of an idle cluster grow, and what ends that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog.idle_backoff import IdleBackoff


def test_the_interval_doubles_up_to_its_limit_and_starts_anew_after_news() -> None:
    rest, seen = IdleBackoff(500, 4_500), []
    for _ in range(6):
        seen.append(rest.interval_ms)
        rest.quiet()
    assert seen == [500, 500, 1_000, 2_000, 4_000, 4_500]
    rest.news()
    assert rest.interval_ms == 500


@given(st.integers(0, 1_000), st.integers(0, 5_000), st.lists(st.booleans(), max_size=60))
def test_it_is_never_shorter_than_usual_nor_above_the_limit(usual: int, more: int, rounds: list[bool]) -> None:
    rest = IdleBackoff(usual, usual + more)
    for is_news in rounds:
        rest.news() if is_news else rest.quiet()
        assert usual <= rest.interval_ms <= usual + more
        assert not is_news or rest.interval_ms == usual
