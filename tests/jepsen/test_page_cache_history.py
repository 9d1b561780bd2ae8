"""Records that a topic's page-cache durability may lose are excused; nothing else is."""

from __future__ import annotations

import pytest

from jepsen.checkers.history import AllowedLoss, History, Key, Poll, Send, Status
from jepsen.checkers.log_history import check_history

KEY: Key = ("t", 0)


def send(value: str, offset: int, invoked_ns: int, process: str = "p") -> Send:
    return Send(
        process=process,
        key=KEY,
        value=value,
        acks=-1,
        invoked_ns=invoked_ns,
        status=Status.OK,
        offset=offset,
        retried=False,
        life=1,
    )


def poll(at_ns: int, *records: tuple[int, str]) -> Poll:
    return Poll(process="r", assignment=1, key=KEY, records=records, at_ns=at_ns)


def a_loss() -> History:
    """a, b and c were acknowledged; the power went at 10 and left a; d came then and took the place of b."""
    history = History(created=["t"], final_topics=["t"], lives={"t": 1})
    history.sends = [send("a", 0, 1), send("b", 1, 2), send("c", 2, 3), send("d", 1, 20)]
    history.polls = [poll(5, (0, "a"), (1, "b"), (2, "c")), poll(30, (1, "d"))]
    history.final, history.final_ends = {KEY: {0: "a", 1: "d"}}, {KEY: 2}
    history.losses = [AllowedLoss(key=KEY, life=1, end=1, at_ns=10)]
    return history


def names(history: History) -> set[str]:
    return {finding.name for finding in check_history(history)}


def test_an_allowed_loss_is_no_finding() -> None:
    assert names(a_loss()) == set()


def test_an_answer_with_lost_records_in_its_middle_is_no_hole() -> None:
    """Which records of a deleted life survived is not known: some of one answer may be left out."""
    history = a_loss()
    history.polls = [poll(30, (0, "a"), (1, "b"), (2, "d"))]
    history.sends[3].offset = 2
    history.final[KEY], history.final_ends[KEY] = {0: "a", 1: "x", 2: "d"}, 3
    assert "poll-skip" not in names(history)
    history.polls = [poll(30, (0, "a"), (2, "d"))]
    assert "poll-skip" in names(history)


def test_the_same_without_the_loss_is_found() -> None:
    history = a_loss()
    history.losses = []
    assert {"lost-write", "vanished-read", "inconsistent-offsets", "nonmonotonic-send"} <= names(history)


@pytest.mark.parametrize(
    "loss",
    [
        AllowedLoss(key=KEY, life=1, end=2, at_ns=10),
        AllowedLoss(key=KEY, life=1, end=1, at_ns=1),
        AllowedLoss(key=KEY, life=2, end=1, at_ns=10),
        AllowedLoss(key=("t", 1), life=1, end=1, at_ns=10),
    ],
    ids=["after the record", "before it was sent", "of another life", "of another partition"],
)
def test_a_loss_excuses_no_other_records(loss: AllowedLoss) -> None:
    history = a_loss()
    history.losses = [loss]
    assert "lost-write" in names(history)


def test_a_hole_a_duplicate_and_a_record_that_comes_back_are_found_all_the_same() -> None:
    hole = a_loss()
    hole.final[KEY] = {0: "a", 2: "d"}
    hole.final_ends[KEY] = 3
    assert "offset-gap" in names(hole)
    twice = a_loss()
    twice.final[KEY], twice.final_ends[KEY] = {0: "a", 1: "d", 2: "d"}, 3
    assert "duplicate" in names(twice)
    back = a_loss()
    back.final[KEY] = {0: "a", 1: "b"}
    assert "inconsistent-offsets" in names(back), "b is there again, where d was acknowledged"
