"""The checkers of deletions: what may vanish after one, and what may never be seen again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jepsen.checkers.history import Deletion, History, Poll, Send, Status
from jepsen.checkers.log_history import check_history

KEY = ("t", 0)


def send(value: str, offset: int, life: int) -> Send:
    sent = Send(process="p", key=KEY, value=value, acks=-1, invoked_ns=0, idempotent=True)
    sent.ok(offset, retried=False, now_ns=1)
    sent.life = life
    return sent


def poll(*records: tuple[int, str], life: int, assignment: int, assigned_ns: int = 0) -> Poll:
    return Poll(
        process="r",
        assignment=assignment,
        key=KEY,
        records=records,
        at_ns=assigned_ns,
        life=life,
        assigned_ns=assigned_ns,
    )


def good() -> History:
    """Life 1 held a, b, c. Life 2 held d, e, f, g; the records before 2 were deleted, so d and e are gone."""
    return History(
        sends=[*(send("abc"[at], at, 1) for at in range(3)), *(send("defg"[at], at, 2) for at in range(4))],
        polls=[
            poll((0, "a"), (1, "b"), life=1, assignment=1),
            poll((0, "d"), life=2, assignment=1),
            poll((2, "f"), life=2, assignment=1),  # 1 was deleted meanwhile
            poll((2, "f"), (3, "g"), life=2, assignment=2, assigned_ns=30),
        ],
        deletions=[Deletion(key=KEY, life=2, before=2, invoked_ns=10, acked_ns=20)],
        created=["t"],
        lives={"t": 2},
        configs={"t": {"retention.ms": "1"}},
        partitions={"t": 1},
        final={KEY: {2: "f", 3: "g"}},
        final_starts={KEY: 2},
        final_ends={KEY: 4},
        final_topics=["t"],
        final_configs={"t": {"retention.ms": "1", "other": "x"}},
        final_partitions={"t": 1},
    )


def names(history: History) -> list[str]:
    return sorted({finding.name for finding in check_history(history)})


def test_what_was_deleted_may_vanish() -> None:
    assert names(good()) == []


def lose_a_record_above_the_deletion(history: History) -> None:
    del history.final[KEY][3]
    history.final_ends[KEY] = 3


def begin_above_the_deletion(history: History) -> None:
    del history.final[KEY][2]
    history.final_starts[KEY] = 3


def begin_below_the_deletion(history: History) -> None:
    history.final[KEY][1] = "e"
    history.final_starts[KEY] = 1


def read_below_the_deletion(history: History) -> None:
    history.polls.append(poll((1, "e"), life=2, assignment=3, assigned_ns=21))


def skip_a_record_above_the_deletion(history: History) -> None:
    history.final[KEY][4], history.final_ends[KEY] = "h", 5
    history.sends.append(send("h", 4, 2))
    history.polls.append(poll((2, "f"), (4, "h"), life=2, assignment=3))


def find_a_dead_record_at_the_end(history: History) -> None:
    history.final[KEY][4], history.final_ends[KEY] = "c", 5


def read_a_dead_record(history: History) -> None:
    history.polls.append(poll((4, "c"), life=2, assignment=3))


def read_two_values_in_one_life(history: History) -> None:
    history.sends.append(send("x", 7, 1))
    history.polls.append(poll((1, "x"), life=1, assignment=3))


def bring_a_topic_back(history: History) -> None:
    history.deleted.append("u")
    history.final_topics.append("u")


def forget_a_setting(history: History) -> None:
    history.final_configs["t"]["retention.ms"] = "-1"


def forget_a_partition(history: History) -> None:
    history.partitions["t"] = 2


BAD: list[tuple[Callable[[History], None], str]] = [
    (lose_a_record_above_the_deletion, "lost-write"),
    (lose_a_record_above_the_deletion, "vanished-read"),
    (begin_above_the_deletion, "start-too-high"),
    (begin_above_the_deletion, "lost-write"),
    (begin_below_the_deletion, "start-went-back"),
    (read_below_the_deletion, "deleted-record-read"),
    (skip_a_record_above_the_deletion, "poll-skip"),
    (find_a_dead_record_at_the_end, "dead-record-read"),
    (read_a_dead_record, "dead-record-read"),
    (read_two_values_in_one_life, "inconsistent-offsets"),
    (bring_a_topic_back, "topic-came-back"),
    (forget_a_setting, "lost-setting"),
    (forget_a_partition, "lost-partitions"),
]


@pytest.mark.parametrize(("spoil", "finding"), BAD, ids=[f"{spoil.__name__}: {name}" for spoil, name in BAD])
def test_each_anomaly_is_found(spoil: Callable[[History], None], finding: str) -> None:
    history = good()
    spoil(history)
    assert finding in names(history)


def not_acknowledged(history: History) -> None:
    """Then readers may still see the records, and the log may begin at its old start."""
    history.deletions[0].acked_ns = -1
    history.final[KEY].update({0: "d", 1: "e"})
    history.final_starts[KEY] = 0
    history.polls.append(poll((0, "d"), life=2, assignment=3, assigned_ns=21))


def lose_what_no_life_is_known_of(history: History) -> None:
    history.sends.append(send("x", 9, 0))
    history.polls.append(poll((9, "y"), life=0, assignment=3))
    history.sends.append(Send(process="p", key=KEY, value="y", acks=-1, invoked_ns=0, status=Status.INFO))


@pytest.mark.parametrize("change", [not_acknowledged, lose_what_no_life_is_known_of])
def test_what_is_not_promised_is_no_anomaly(change: Callable[[History], None]) -> None:
    history = good()
    change(history)
    assert names(history) == []
