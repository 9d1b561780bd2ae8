"""The bound on open files and loaded indexes: second chance among what may leave."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from quorumlog_storage.files.eviction import Bounded


class Kept:
    """A resident of the tests."""

    def __init__(self, name: int, weight: int = 1) -> None:
        self.name, self.weight = name, weight
        self.was_used = self.is_held = self.is_here = False

    def leave(self) -> None:
        assert not self.is_held, f"{self.name} is held"
        self.is_here = False

    def use(self, bound: Bounded) -> None:
        if self.is_here:
            self.was_used = True
        else:
            self.is_here = True
            bound.admit(self)


def here(residents: list[Kept]) -> list[int]:
    return [one.name for one in residents if one.is_here]


def test_the_first_that_was_not_used_leaves() -> None:
    bound, residents = Bounded(3, are_alike=True), [Kept(n) for n in range(4)]
    for one in (0, 1, 2, 0, 3):
        residents[one].use(bound)
    assert here(residents) == [0, 2, 3]


def test_what_is_held_stays_and_the_bound_says_so() -> None:
    bound, residents = Bounded(2, are_alike=True), [Kept(n) for n in range(5)]
    for one in residents[:4]:
        one.is_held = True
        one.use(bound)
    assert here(residents) == [0, 1, 2, 3] and bound.is_over
    for one in residents[:4]:
        one.is_held = False
    bound.make_room()
    assert len(here(residents)) == 2 and not bound.is_over


def test_all_that_may_leave_leaves_when_it_is_emptied() -> None:
    bound, residents = Bounded(10, are_alike=True), [Kept(n) for n in range(5)]
    for one in residents:
        one.use(bound)
        one.use(bound)
    residents[2].is_held = True
    assert bound.empty() and here(residents) == [2]
    assert not bound.empty()


@given(
    st.integers(1, 20),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["use", "hold", "free", "forget"])), max_size=80),
    st.lists(st.integers(1, 8), min_size=10, max_size=10),
)
def test_the_limit_is_kept_unless_what_is_held_exceeds_it(
    limit: int, calls: list[tuple[int, str]], weights: list[int]
) -> None:
    bound, residents = Bounded(limit), [Kept(n, weight) for n, weight in enumerate(weights)]
    for number, call in calls:
        one = residents[number]
        if call == "use":
            one.use(bound)
        elif call == "forget":
            bound.forget(one)
            one.is_here = False
        else:
            one.is_held = call == "hold" and one.is_here
    bound.make_room()
    present = [one for one in residents if one.is_here]
    assert bound.weight == sum(one.weight for one in present)
    assert bound.weight <= limit or all(one.is_held for one in present)


def test_threads_that_admit_and_forget_together_lose_nothing() -> None:
    bound = Bounded(50, are_alike=True)

    def work(seed: int) -> None:
        mine = [Kept(seed * 1000 + n) for n in range(200)]
        for turn in range(2_000):
            one = mine[(turn * 7) % 200]
            one.use(bound)
            if turn % 3 == 0:
                bound.forget(one)
                one.is_here = False

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    bound.make_room()
    assert len(bound) <= 50
