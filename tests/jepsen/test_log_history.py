"""The checkers find each anomaly in a history that contains it, and nothing in a good one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jepsen.checkers.history import History, Poll, Send, Status
from jepsen.checkers.log_history import check_history

KEY = ("t", 0)


def send(value: str, offset: int, *, acks: int = -1, status: Status = Status.OK, retried: bool = False) -> Send:
    return Send(
        process="p",
        key=KEY,
        value=value,
        acks=acks,
        invoked_ns=0,
        status=status,
        offset=offset,
        retried=retried,
        life=1,
    )


def poll(*records: tuple[int, str], process: str = "r", assignment: int = 1) -> Poll:
    return Poll(process=process, assignment=assignment, key=KEY, records=records, at_ns=0)


def good() -> History:
    log = {0: "a", 1: "b", 2: "c"}
    return History(
        sends=[send("a", 0), send("b", 1), send("c", 2, acks=1), send("d", -1, status=Status.FAIL)],
        polls=[poll((0, "a")), poll((1, "b"), (2, "c")), poll((0, "a"), (1, "b"), assignment=2)],
        created=["t"],
        final={KEY: log},
        final_ends={KEY: 3},
        final_topics=["t"],
    )


def names(history: History) -> list[str]:
    return sorted({finding.name for finding in check_history(history)})


def test_a_good_history_has_no_findings() -> None:
    assert names(good()) == []


def lose_an_acked_write(history: History) -> None:
    history.sends.append(send("e", 3))


def replace_an_acked_write(history: History) -> None:
    history.final[KEY][1] = "x"
    history.sends.append(send("x", -1, status=Status.INFO))


def forget_what_was_read(history: History) -> None:
    history.sends.append(send("e", -1, status=Status.INFO))
    history.polls.append(poll((3, "e"), process="r2"))


def store_twice(history: History) -> None:
    history.final[KEY][3], history.final_ends[KEY] = "b", 4


def store_what_was_refused(history: History) -> None:
    history.final[KEY][3], history.final_ends[KEY] = "d", 4


def store_what_nobody_sent(history: History) -> None:
    history.final[KEY][3], history.final_ends[KEY] = "ghost", 4


def read_over_a_gap(history: History) -> None:
    history.polls.append(poll((0, "a"), (2, "c"), process="r2"))


def read_backwards(history: History) -> None:
    history.polls.append(poll((1, "b"), (0, "a"), process="r2"))


def leave_a_hole(history: History) -> None:
    history.final_ends[KEY] = 4


def reorder_a_producer(history: History) -> None:
    history.sends[0], history.sends[1] = history.sends[1], history.sends[0]


def lose_a_topic(history: History) -> None:
    history.created.append("u")


BAD: list[tuple[Callable[[History], None], str]] = [
    (lose_an_acked_write, "lost-write"),
    (replace_an_acked_write, "lost-write"),
    (replace_an_acked_write, "inconsistent-offsets"),
    (forget_what_was_read, "vanished-read"),
    (store_twice, "duplicate"),
    (store_what_was_refused, "failed-write-read"),
    (store_what_nobody_sent, "phantom-read"),
    (read_over_a_gap, "poll-skip"),
    (read_backwards, "nonmonotonic-poll"),
    (leave_a_hole, "offset-gap"),
    (reorder_a_producer, "nonmonotonic-send"),
    (lose_a_topic, "lost-topic"),
]


@pytest.mark.parametrize(("spoil", "finding"), BAD, ids=[f"{spoil.__name__}: {name}" for spoil, name in BAD])
def test_each_anomaly_is_found(spoil: Callable[[History], None], finding: str) -> None:
    history = good()
    spoil(history)
    assert finding in names(history)


def test_an_idempotent_record_is_stored_once_whatever_its_outcome() -> None:
    history = good()
    unknown = send("e", -1, status=Status.INFO)
    history.sends.append(unknown)
    history.final[KEY].update({3: "e", 4: "e"})
    history.final_ends[KEY] = 5
    assert names(history) == []
    unknown.idempotent = True
    assert names(history) == ["duplicate"]


def test_idempotent_records_are_in_send_order_whatever_their_outcome() -> None:
    history = good()
    unknown, told = send("e", -1, status=Status.INFO), send("f", 3)
    history.sends += [unknown, told]
    history.final[KEY].update({3: "f", 4: "e"})
    history.final_ends[KEY] = 5
    assert names(history) == []
    unknown.idempotent = told.idempotent = True
    assert names(history) == ["nonmonotonic-send"]


def tolerate_a_retried_copy(history: History) -> None:
    history.sends.append(send("e", 4, retried=True))
    history.final[KEY].update({3: "e", 4: "e"})
    history.final_ends[KEY] = 5


def tolerate_a_lost_write_of_one_ack(history: History) -> None:
    history.sends.append(send("e", 7, acks=1))


def tolerate_an_unknown_outcome(history: History) -> None:
    history.sends.append(send("e", -1, status=Status.INFO))


@pytest.mark.parametrize(
    "change", [tolerate_a_retried_copy, tolerate_a_lost_write_of_one_ack, tolerate_an_unknown_outcome]
)
def test_allowed_histories_have_no_findings(change: Callable[[History], None]) -> None:
    history = good()
    change(history)
    assert names(history) == []
