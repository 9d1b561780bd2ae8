"""Virtual time: the order of events, and randomness per concern."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepsen.sim.time.scheduler import AT_ONE_TIME, NS_PER_S, Scheduler, TimeStandsStill


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 3), max_size=3)), max_size=12))
def test_order_is_by_time_and_then_by_request(plan: list[tuple[int, list[int]]]) -> None:
    """Each event schedules more when it runs; the simpler model sorts all events by (time, scheduling order)."""
    scheduler = Scheduler(seed=1)
    asked: list[tuple[int, int]] = []
    done: list[tuple[int, int]] = []

    def ask(delay_ns: int, more: list[int]) -> None:
        entry = (scheduler.now_ns + delay_ns, len(asked))
        asked.append(entry)

        def run() -> None:
            assert scheduler.now_ns == entry[0]
            done.append(entry)
            for further_ns in more:
                ask(further_ns, [])

        scheduler.call_later(delay_ns, run)

    for delay_ns, more in plan:
        ask(delay_ns, more)
    while scheduler.step():
        pass
    assert done == sorted(asked)


def test_time_that_stands_still_is_told() -> None:
    scheduler = Scheduler(seed=1)

    def again() -> None:
        scheduler.call_later(0, again)

    scheduler.call_later(NS_PER_S, again)
    with pytest.raises(TimeStandsStill, match="at 1000000000 ns"):
        scheduler.run_for(2 * NS_PER_S)
    assert scheduler.steps == AT_ONE_TIME + 1


def test_a_cancelled_timer_does_not_happen_and_does_not_move_time() -> None:
    scheduler = Scheduler(seed=1)
    timers = [scheduler.call_later(NS_PER_S + number, lambda: None) for number in range(3_000)]
    for timer in timers:
        timer.cancel()
        timer.cancel()
    assert scheduler.next_ns() is None and not scheduler.step() and scheduler.now_ns == 0


def test_run_until_stops_at_its_time() -> None:
    scheduler = Scheduler(seed=1)
    seen: list[int] = []
    for when_ns in (5, 10, 11):
        scheduler.call_at(when_ns, lambda: seen.append(scheduler.now_ns))
    scheduler.run_until(10)
    assert seen == [5, 10] and scheduler.now_ns == 10
    assert scheduler.run_while(lambda: len(seen) < 3, until_ns=20)
    assert not scheduler.run_while(lambda: True, until_ns=20)


def test_each_concern_has_its_own_randomness() -> None:
    draws = [Scheduler(seed=7).rng("net/a/b").random(), Scheduler(seed=7).rng("net/a/c").random()]
    assert draws == [Scheduler(seed=7).rng("net/a/b").random(), Scheduler(seed=7).rng("net/a/c").random()]
    assert len({*draws, Scheduler(seed=8).rng("net/a/b").random()}) == 3
