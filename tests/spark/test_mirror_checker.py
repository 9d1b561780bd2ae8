"""The checker of fail-overs finds what is wrong with bad histories, and nothing in good ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.mirror_checker import Found, History, Written, problems

ALL = tuple(range(10))
WRITTEN = tuple(
    Written("a" if one < 6 else "b", one % 2, Found(one, b"k", b"%d" % one, (("h", b"1"),), 1_000 + one)) for one in ALL
)


def log(*numbers: int) -> dict[int, list[Found]]:
    made: dict[int, list[Found]] = {}
    for number in numbers:
        made.setdefault(number % 2, []).append(WRITTEN[number].record)
    return made


GOOD = History(WRITTEN, {"a": log(*ALL), "b": log(6, 7, 8, 9, 0, 1, 2, 3, 4, 5)}, read=(3, 1, *range(4, 10), 0, 2))


def on_b(made: dict[int, list[Found]]) -> History:
    return replace(GOOD, logs={"a": log(*ALL), "b": made})


def changed(number: int, **fields: Any) -> History:
    made = log(*ALL)
    made[number % 2][number // 2] = WRITTEN[number].record._replace(**fields)
    return on_b(made)


BAD = [
    ("a copy is missing", on_b(log(*ALL[:9])), "b: 1 lost: [9]"),
    ("a copy is there twice", on_b(log(*ALL, 4)), "b: 1 twice: [4]"),
    ("a record that came home twice", replace(GOOD, logs={"a": log(*ALL, 7), "b": log(*ALL)}), "a: 1 twice: [7]"),
    ("a side is empty", on_b({}), "b: 10 lost"),
    ("another partition", on_b({0: [*log(*ALL)[0], *log(1)[1]], 1: log(*ALL)[1][1:]}), "record 1 is not what it was"),
    ("another key", changed(2, key=None), "record 2 is not what it was"),
    ("another value", changed(2, value=b""), "record 2 is not what it was"),
    ("no headers", changed(3, headers=()), "record 3 is not what it was"),
    ("another time", changed(5, timestamp_ms=7), "record 5 is not what it was"),
    ("another order", on_b(log(2, 0, 1, 3, 4, 5, 6, 7, 8, 9)), "records of a in partition 0 lie in another order"),
    ("not read", replace(GOOD, read=ALL[1:]), "the group: 1 lost: [0]"),
    ("read twice", replace(GOOD, read=(*ALL, 9)), "the group: 1 twice: [9]"),
]


@pytest.mark.parametrize(("history", "says"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_bad_history(history: History, says: str) -> None:
    assert any(says in text for text in problems(history)), problems(history)


def test_a_good_history_and_one_with_a_record_that_nobody_acknowledged() -> None:
    assert problems(GOOD) == []
    assert problems(replace(GOOD, acknowledged=WRITTEN[:9], read=ALL[:9])) == [], "it may be there"
    assert problems(History()) == []


@given(st.permutations(ALL), st.sampled_from(ALL))
def test_each_record_that_is_taken_away_is_found(read: list[int], gone: int) -> None:
    assert problems(replace(GOOD, read=read)) == []
    assert problems(on_b(log(*(one for one in ALL if one != gone)))) == [f"b: 1 lost: [{gone}]"]
