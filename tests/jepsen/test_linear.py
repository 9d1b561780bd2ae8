"""The checker of linearizability: histories that it must accept, mistakes that it must find, and its limit."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_samples import by_trying_all, good_history, worse

from jepsen.linear.checker import Outcome, check
from jepsen.linear.models import ABSENT, CREATE, DELETE, DELETE_ID, EXISTS, FIND, READ, SET, SettingModel, TopicModel
from jepsen.linear.operation import OK, Operation
from tests.parts import few


def ops(*rows: tuple[Any, ...]) -> list[Operation]:
    """Each row: kind, argument, answer, call, return. Without a return the operation is open."""
    return [
        Operation(
            number=number,
            process=f"p{number}",
            kind=kind,
            argument=argument,
            answer=answer,
            invoked_ns=called,
            returned_ns=returned[0] if returned else -1,
        )
        for number, (kind, argument, answer, called, *returned) in enumerate(rows)
    ]


GOOD = [
    ("nothing", ops()),
    ("one after another", ops((CREATE, "", "a", 0, 1), (FIND, "", "a", 2, 3), (DELETE, "", OK, 4, 5))),
    ("two creations at once, one wins", ops((CREATE, "", "a", 0, 9), (CREATE, "", EXISTS, 1, 8))),
    ("the loser answers first", ops((CREATE, "", EXISTS, 0, 2), (CREATE, "", "a", 1, 9))),
    ("a creation that times out may happen", ops((CREATE, "", None, 0), (FIND, "", "a", 5, 6))),
    ("a creation that times out may not happen", ops((CREATE, "", None, 0), (FIND, "", ABSENT, 5, 6))),
    ("it may happen much later", ops((CREATE, "", None, 0), (FIND, "", ABSENT, 5, 6), (FIND, "", "a", 90, 91))),
    ("a deletion that times out", ops((CREATE, "", "a", 0, 1), (DELETE, "", None, 2), (CREATE, "", "b", 3, 4))),
    (
        "a repeated deletion by id spares the next life",
        ops(
            (CREATE, "", "a", 0, 1),
            (DELETE_ID, "a", None, 2),
            (DELETE_ID, "a", OK, 3, 4),
            (CREATE, "", "b", 5, 6),
            (DELETE_ID, "a", ABSENT, 7, 8),
            (FIND, "", "b", 9, 10),
        ),
    ),
    ("a setting goes with its topic", ops((CREATE, "", "a", 0, 1), (SET, "x", OK, 2, 3), (READ, "", "x", 4, 5))),
    ("a read between two writes", ops((CREATE, "", "a", 0, 1), (SET, "x", OK, 2, 9), (READ, "", "", 3, 4))),
]

BAD = [
    ("a lost write", ops((CREATE, "", "a", 0, 1), (FIND, "", ABSENT, 2, 3))),
    ("a lost setting", ops((CREATE, "", "a", 0, 1), (SET, "x", OK, 2, 3), (READ, "", "", 4, 5))),
    (
        "a stale read",
        ops((CREATE, "", "a", 0, 1), (SET, "x", OK, 2, 3), (SET, "y", OK, 4, 5), (READ, "", "x", 6, 7)),
    ),
    ("a topic that nobody made", ops((FIND, "", "a", 0, 1))),
    ("two winners of one creation", ops((CREATE, "", "a", 0, 9), (CREATE, "", "b", 1, 8))),
    (
        "a topic that comes back",
        ops((CREATE, "", "a", 0, 1), (DELETE, "", OK, 2, 3), (FIND, "", "a", 4, 5)),
    ),
    (
        "an open creation that comes back",
        ops((CREATE, "", None, 0), (FIND, "", "a", 1, 2), (DELETE, "", OK, 3, 4), (FIND, "", "a", 5, 6)),
    ),
    ("a creation refused without a topic", ops((CREATE, "", EXISTS, 0, 1))),
    (
        "a refusal by a topic that is gone",
        ops((CREATE, "", "a", 0, 1), (DELETE, "", OK, 2, 3), (CREATE, "", EXISTS, 4, 5)),
    ),
    ("two deletions of one topic", ops((CREATE, "", "a", 0, 1), (DELETE, "", OK, 2, 9), (DELETE, "", OK, 3, 8))),
    ("a deletion of nothing", ops((DELETE, "", OK, 0, 1))),
    (
        "a deletion told twice by id",
        ops((CREATE, "", "a", 0, 1), (DELETE_ID, "a", OK, 2, 3), (DELETE_ID, "a", OK, 4, 5)),
    ),
    (
        "one creation with two names",
        ops((CREATE, "", None, 0), (FIND, "", "a", 1, 2), (FIND, "", "b", 3, 4)),
    ),
    (
        "a setting of the last life",
        ops(
            (CREATE, "", "a", 0, 1),
            (SET, "x", OK, 2, 3),
            (DELETE, "", OK, 4, 5),
            (CREATE, "", "b", 6, 7),
            (READ, "", "x", 8, 9),
        ),
    ),
]


@pytest.mark.parametrize("history", [history for _, history in GOOD], ids=[name for name, _ in GOOD])
def test_a_good_history_is_linearizable(history: list[Operation]) -> None:
    verdict = check(TopicModel(history), history)
    assert verdict.outcome is Outcome.LINEARIZABLE, str(verdict)


@pytest.mark.parametrize("history", [history for _, history in BAD], ids=[name for name, _ in BAD])
def test_a_bad_history_is_not(history: list[Operation]) -> None:
    verdict = check(TopicModel(history), history)
    assert verdict.outcome is Outcome.IMPOSSIBLE
    assert verdict.stuck and str(verdict.stuck[0]) in str(verdict)


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_what_a_sequential_topic_answered_is_linearizable(seed: int, size: int) -> None:
    history = good_history(random.Random(seed), size)
    verdict = check(TopicModel(history), history)
    assert verdict.outcome is Outcome.LINEARIZABLE, str(verdict)


@settings(max_examples=few(20), deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_twenty_operations_at_once_may_be_too_much_and_are_never_wrong(seed: int, size: int) -> None:
    history = good_history(random.Random(seed), size, open_share=0.2, overlap_ns=1_000)
    assert check(TopicModel(history), history, max_steps=50_000).outcome is not Outcome.IMPOSSIBLE


@settings(max_examples=few(300))
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_it_agrees_with_trying_all_orders(seed: int, size: int) -> None:
    rng = random.Random(seed)
    history = worse(rng, good_history(rng, size))
    model = TopicModel(history)
    expected = by_trying_all(model, history)  # type: ignore[arg-type]
    assert (check(model, history).outcome is Outcome.LINEARIZABLE) == expected


def test_most_changed_answers_are_found() -> None:
    """The property above would also hold if no changed history were bad."""
    found = 0
    for seed in range(200):
        rng = random.Random(seed)
        history = worse(rng, good_history(rng, 30, open_share=0.05))
        found += check(TopicModel(history), history).outcome is Outcome.IMPOSSIBLE
    assert found > 60


def test_a_search_without_end_is_not_decided() -> None:
    """Twenty-four open settings, and a read of what nobody set: every order of them would have to be tried."""
    rows = [(CREATE, "", "a", 0, 1), *((SET, f"v{number}", None, 2) for number in range(24)), (READ, "", "?", 90, 91)]
    history = ops(*rows)
    verdict = check(TopicModel(history), history, max_steps=20_000)
    assert verdict.outcome is Outcome.UNDECIDED and verdict.steps == 20_001


SETTINGS = [
    ("set and read", ops((SET, "1", OK, 0, 1), (READ, "", "1", 2, 3)), True),
    ("taken back", ops((SET, "1", OK, 0, 1), (SET, "", OK, 2, 3), (READ, "", "", 4, 5)), True),
    (
        "an open one is read, and is not undone",
        ops((SET, "1", None, 0), (READ, "", "1", 1, 2), (READ, "", "", 3, 4)),
        False,
    ),
    ("new, then old", ops((SET, "1", OK, 0, 9), (READ, "", "1", 1, 2), (READ, "", "", 3, 4)), False),
]


@pytest.mark.parametrize(("history", "good"), [row[1:] for row in SETTINGS], ids=[row[0] for row in SETTINGS])
def test_a_setting(history: list[Operation], good: bool) -> None:
    assert (check(SettingModel(), history).outcome is Outcome.LINEARIZABLE) == good
