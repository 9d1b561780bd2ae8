"""The checks of a live run find each anomaly in a ledger and logs that contain it, and nothing in good ones.

On small runs they find what the checkers of the simulation find, which have an object for each record.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen.checkers.history import History, Send, Status
from jepsen.checkers.log_history import check_history
from jepsen.live.evidence.checks import (
    MOST_FINDINGS,
    REPLICATED_MS,
    check_logs,
    count_missing_leader_only,
    is_excused,
    judge_doubled,
    vanished_reads,
)
from jepsen.live.evidence.ledger import NOT_ACKNOWLEDGED, UNPLACED, Ledger, ProducerSpec
from jepsen.live.evidence.readers import Records
from jepsen.live.evidence.values import FOREIGN, record_id

SAFE, LEADER_ONLY = 0, 1  # producers
Logs = list["array[int]"]


def ledger_of(*told: list[int]) -> Ledger:
    """told: for each producer the offsets in partition 0 that it was told, by turn. Every answer came after 5 s."""
    specs = (
        ProducerSpec(name="safe", idempotent=True, per_second=1),
        ProducerSpec(name="leader-only", idempotent=False, per_second=1),
    )
    ledger = Ledger(specs, partitions=1)
    for number, offsets in enumerate(told):
        for offset in offsets:
            turn = ledger.sent[number][0].send(5_000)
            if offset != NOT_ACKNOWLEDGED:
                ledger.sent[number][0].acknowledge(turn, offset, 5_000)
    return ledger


def log_of(*records: tuple[int, int] | None) -> Logs:
    """(producer, turn) by offset; None for a value that nobody sent."""
    return [array("q", [FOREIGN if found is None else record_id(*found) for found in records])]


def good() -> tuple[Ledger, Logs]:
    """The safe producer's record 2 has no answer, and its record 3 one without an offset."""
    ledger = ledger_of([0, 1, NOT_ACKNOWLEDGED, UNPLACED], [2])
    return ledger, log_of((SAFE, 0), (SAFE, 1), (LEADER_ONLY, 0), (SAFE, 2), (SAFE, 3))


def names(ledger: Ledger, logs: Logs, windows: list[tuple[int, int]] | None = None) -> list[str]:
    findings, doubled = check_logs(ledger, logs, windows or [])
    duplicates, _ = judge_doubled(doubled, lambda _partition, _offset: "the same number")
    return sorted(finding.name for finding in (*findings, *duplicates))


def test_a_good_run_has_no_findings() -> None:
    assert names(*good()) == []


def lose_the_last(logs: Logs) -> None:
    logs[0].pop()


def lose_one(logs: Logs) -> None:
    logs[0][1] = record_id(SAFE, 2)
    logs[0][3] = record_id(LEADER_ONLY, 0)


def move_one(logs: Logs) -> None:
    logs[0].insert(1, record_id(LEADER_ONLY, 0))


def double_one(logs: Logs) -> None:
    logs[0].append(record_id(SAFE, 3))


def swap_the_last(logs: Logs) -> None:
    logs[0][3], logs[0][4] = logs[0][4], logs[0][3]


def put_a_foreign_one(logs: Logs) -> None:
    logs[0].append(FOREIGN)


def put_one_never_sent(logs: Logs) -> None:
    logs[0].append(record_id(SAFE, 4))


BROKEN = [
    (lose_the_last, ["lost-write"]),
    (lose_one, ["lost-write"]),
    (move_one, ["moved-write", "moved-write"]),  # of both producers
    (double_one, ["duplicate"]),
    (swap_the_last, ["nonmonotonic-send"]),
    (put_a_foreign_one, ["phantom-read"]),
    (put_one_never_sent, ["phantom-read"]),
]


@pytest.mark.parametrize(("breaks", "found"), BROKEN, ids=[breaks.__name__ for breaks, _ in BROKEN])
def test_each_anomaly_is_found(breaks: Callable[[Logs], None], found: list[str]) -> None:
    ledger, logs = good()
    breaks(logs)
    assert names(ledger, logs) == found


def test_a_leader_only_record_may_be_lost_only_around_a_strike() -> None:
    ledger, logs = ledger_of([0], [1]), log_of((SAFE, 0))
    assert names(ledger, logs) == ["lost-write"]
    assert names(ledger, logs, [(5_000 + REPLICATED_MS, 9_000)]) == []
    assert count_missing_leader_only(ledger, logs) == 1


def test_a_strike_excuses_no_record_of_an_idempotent_producer() -> None:
    assert names(ledger_of([0], []), log_of(), [(0, 9_000)]) == ["lost-write"]


def test_a_leader_only_record_may_be_there_twice() -> None:
    assert names(ledger_of([], [0]), log_of((LEADER_ONLY, 0), (LEADER_ONLY, 0))) == []


EXCUSES = [
    ("before", 1_000, False),
    ("just before", 3_000, True),
    ("within", 6_000, True),
    ("at its end", 8_000, True),
    ("between two", 8_001, False),
    ("after all", 90_001, False),
]


@pytest.mark.parametrize(("at_ms", "excused"), [case[1:] for case in EXCUSES], ids=[case[0] for case in EXCUSES])
def test_windows_excuse(at_ms: int, excused: bool) -> None:
    assert is_excused(at_ms, at_ms, [(5_000, 8_000), (80_000, 90_000)]) is excused


def test_a_window_excuses_what_was_sent_in_it_and_answered_just_after() -> None:
    """A leader that is cut off takes records alone; its answers arrive when the links work again."""
    assert is_excused(7_990, 8_010, [(5_000, 8_000)])
    assert not is_excused(8_001, 8_010, [(5_000, 8_000)])


def test_a_record_that_its_producer_numbered_anew_is_no_duplicate_of_the_brokers() -> None:
    doubled = check_logs(*good(), [])[1]
    assert doubled == []
    ledger, logs = good()
    double_one(logs)
    (one,) = check_logs(ledger, logs, [])[1]
    assert (one.turn, one.first, one.again) == (3, 4, 5)
    assert [finding.name for finding in judge_doubled([one], lambda *_: None)[0]] == ["duplicate"]  # not known
    findings, renumbered = judge_doubled([one], lambda _, offset: offset)
    assert findings == [] and len(renumbered) == 1


def test_a_broken_log_gives_few_findings() -> None:
    ledger, logs = ledger_of(list(range(1_000)), []), log_of()
    assert names(ledger, logs) == ["lost-write"] * MOST_FINDINGS


def test_a_read_that_vanished_is_found() -> None:
    _, logs = good()
    assert list(vanished_reads([logs[0][:3]], logs)) == []
    changed = array("q", [*logs[0][:2], record_id(SAFE, 9)])
    assert [finding.name for finding in vanished_reads([changed], logs)] == ["vanished-read"]
    longer = array("q", [*logs[0], record_id(SAFE, 9)])
    assert [finding.name for finding in vanished_reads([longer], logs)] == ["vanished-read"]


def test_a_reader_that_misses_or_repeats_an_offset_is_found() -> None:
    records = Records(partitions=1)
    for offset in (0, 1, 3, 0):
        records.take("reader", 0, offset, record_id(SAFE, offset))
    assert [finding.name for finding in records.findings] == ["poll-skip", "nonmonotonic-poll"]
    assert len(records.by_partition[0]) == 2


def history_of(ledger: Ledger, logs: Logs) -> History:
    """The same run for the checkers of the simulation."""
    sends = [
        Send(
            process="safe",
            key=("t", 0),
            value=str(record_id(SAFE, turn)),
            acks=-1,
            invoked_ns=turn,
            idempotent=True,
            life=1,
        )
        for turn in range(len(ledger.sent[SAFE][0]))
    ]
    for turn, offset, _ in ledger.sent[SAFE][0].acknowledgements():
        sends[turn].ok(offset, True, 0)
        assert sends[turn].status is Status.OK
    log = {offset: str(found) for offset, found in enumerate(logs[0])}
    return History(sends=sends, lives={"t": 1}, final={("t", 0): log}, final_ends={("t", 0): len(log)})


ORDER = "nonmonotonic-send"


@given(
    told=st.lists(st.sampled_from([NOT_ACKNOWLEDGED, 0, 1, 2, 3]), max_size=4),
    held=st.lists(st.integers(0, 5), max_size=6),
)
def test_they_find_what_the_checkers_of_the_simulation_find(told: list[int], held: list[int]) -> None:
    """Those do not tell lost from moved, and count a repetition as out of order, too."""
    ledger, logs = ledger_of(told, []), log_of(*((SAFE, turn) for turn in held))
    ours = {name.replace("moved", "lost") for name in names(ledger, logs)}
    theirs = {finding.name for finding in check_history(history_of(ledger, logs))} - {"inconsistent-offsets"}
    assert ours - {ORDER} == theirs - {ORDER}
    if theirs <= {ORDER, "phantom-read"}:
        assert ours == theirs or max(held) >= len(told)  # they do not order what was never sent
