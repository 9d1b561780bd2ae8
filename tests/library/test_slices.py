"""Works in slices: whose turn it is, and what an error, an end or a call inside of a slice does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorumlog.slices import OneATurn, Rotation, Sliced, at_once, begin

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    RAN.clear()


def work(name: str, slices: int) -> Sliced[str]:
    for number in range(slices):
        RAN.append(f"{name}{number}")
        if number < slices - 1:
            yield
    return name


@pytest.mark.parametrize(("is_fair", "order"), [(True, "a0 b0 a1 b1 a2"), (False, "a0 a1 a2 b0 b1")])
def test_works_take_turns_or_end_one_after_the_other(is_fair: bool, order: str) -> None:
    works, ended = Rotation(is_fair=is_fair), list[str]()
    works.add(work("a", 3), ended.append)
    works.add(work("b", 2), ended.append)
    at_once(works.rest())
    assert " ".join(RAN) == order and sorted(ended) == ["a", "b"] and not works


def test_a_work_that_raises_is_dropped_and_the_others_go_on() -> None:
    def wrong() -> Sliced[None]:
        yield
        raise ValueError

    works = Rotation()
    works.add(wrong())
    works.add(work("b", 2))
    works.run_slice()
    works.run_slice()
    with pytest.raises(ValueError):
        works.run_slice()
    at_once(works.rest())
    assert RAN == ["b0", "b1"]


def test_a_call_inside_of_a_slice_runs_nothing_and_a_work_that_is_cleared_in_its_slice_is_gone() -> None:
    works, ended = Rotation(), list[None]()

    def clearing() -> Sliced[None]:
        works.run_slice()
        works.clear()
        works.add(work("b", 1))
        yield

    works.add(clearing(), ended.append)
    works.run_slice()
    assert RAN == [] and works
    works.run_slice()
    assert RAN == ["b0"] and not works and ended == []


def test_one_slice_is_run_in_each_turn() -> None:
    due = list[Callable[[], None]]()
    works = Rotation()
    turns = OneATurn(works, due.append)
    works.add(work("a", 2))
    works.add(work("b", 1))
    turns.ask()
    turns.ask()
    while due:
        assert len(due) == 1
        due.pop()()
        RAN.append("|")
    assert " ".join(RAN) == "a0 | b0 | a1 |"


def test_where_there_is_no_loop_all_is_run_at_once() -> None:
    works = Rotation()
    works.add(work("a", 3))
    OneATurn(works, None).ask()
    assert RAN == ["a0", "a1", "a2"]


def test_what_ends_in_its_first_slice_has_no_other() -> None:
    assert begin(work("a", 1)) is None and begin(work("a", 2)) is not None
