"""The window of counters against a set that forgets nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.proof.window import WINDOW, CounterWindow, Taken
from tests.parts import few

NEAR = st.integers(1, 3 * WINDOW)
JUMPS = st.lists(st.one_of(NEAR, st.integers(1, 40), st.integers(1, 2**63 - 1)), max_size=60)


@settings(max_examples=few(300))
@given(JUMPS)
def test_a_counter_is_taken_once_and_never_after_the_window_has_passed(counters: list[int]) -> None:
    window, used, highest = CounterWindow(), set[int](), 0
    for counter in counters:
        if counter <= highest - WINDOW:
            want = Taken.TOO_OLD
        else:
            want = Taken.USED if counter in used else Taken.NEW
        assert window.take(counter) is want
        if want is Taken.NEW:
            used.add(counter)
            highest = max(highest, counter)
        assert window.highest == highest


@given(st.permutations(range(1, 200)))
def test_calls_that_arrive_in_any_order_are_all_taken_once(order: list[int]) -> None:
    window = CounterWindow()
    assert {window.take(counter) for counter in order} == {Taken.NEW}
    assert {window.take(counter) for counter in order} == {Taken.USED}


def test_counters_begin_at_one_and_the_window_has_sharp_edges() -> None:
    window = CounterWindow()
    assert window.take(0) is Taken.TOO_OLD
    assert window.take(WINDOW + 1) is Taken.NEW
    assert [window.take(counter) for counter in (1, 2, 2)] == [Taken.TOO_OLD, Taken.NEW, Taken.USED]
    assert window.take(-(2**40)) is Taken.TOO_OLD
