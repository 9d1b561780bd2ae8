"""When passes begin, which time they believe, and in which slices they go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.retention.passes import (
    FIND_LOGS,
    MAX_JUMP_MS,
    RETIRE_LOGS,
    Find,
    Note,
    RetentionPass,
    RetentionSchedule,
    Retire,
)
from tests.rules import rule

WALL = 1_700_000_000_000
MINUTE, YEAR = 60_000, 365 * 86_400_000
DELAY_MS = 30_000


def key(number: int) -> PartitionKey:
    return (bytes(16), number)


@rule("storage 8.1", "log 8.3")
def test_the_first_pass_comes_soon_and_each_other_after_the_interval() -> None:
    schedule = RetentionSchedule(300_000, now_ms=7, initial_delay_ms=DELAY_MS)
    assert schedule.due_ms == 7 + DELAY_MS
    schedule.begin(30_007, WALL)
    schedule.ended(31_000)
    assert schedule.due_ms == 331_000
    assert RetentionSchedule(100, now_ms=0, initial_delay_ms=DELAY_MS).due_ms == 100


@rule("storage 8.8")
def test_a_jump_of_the_wall_clock_is_believed_at_the_second_look() -> None:
    schedule = RetentionSchedule(5 * MINUTE, now_ms=0, initial_delay_ms=DELAY_MS)
    assert schedule.begin(0, WALL) == WALL
    assert schedule.begin(5 * MINUTE, WALL + 5 * MINUTE + 10 * YEAR) == WALL + 5 * MINUTE, "believed at once"
    assert schedule.begin(10 * MINUTE, WALL + 10 * MINUTE) == WALL + 10 * MINUTE, "the clock is right again"
    jumped = WALL + 2 * YEAR
    assert schedule.begin(15 * MINUTE, jumped + 15 * MINUTE) == WALL + 15 * MINUTE
    assert schedule.begin(20 * MINUTE, jumped + 20 * MINUTE) == jumped + 20 * MINUTE, "it stayed there"
    assert schedule.begin(25 * MINUTE, jumped + 25 * MINUTE) == jumped + 25 * MINUTE


def test_a_clock_that_is_behind_is_believed_at_once() -> None:
    schedule = RetentionSchedule(MINUTE, now_ms=0, initial_delay_ms=DELAY_MS)
    schedule.begin(0, WALL)
    assert schedule.begin(MINUTE, WALL - YEAR) == WALL - YEAR


def test_a_clock_that_is_corrected_a_little_is_believed() -> None:
    schedule = RetentionSchedule(MINUTE, now_ms=0, initial_delay_ms=DELAY_MS)
    schedule.begin(0, WALL)
    assert schedule.begin(MINUTE, WALL + MINUTE + MAX_JUMP_MS) == WALL + MINUTE + MAX_JUMP_MS


@given(st.integers(0, 350), st.data())
def test_a_pass_sees_every_log_notes_once_and_ends(count: int, data: st.DataObject) -> None:
    one = RetentionPass(key(number) for number in range(count))
    seen: list[PartitionKey] = []
    planned: dict[PartitionKey, int] = {}
    left: dict[PartitionKey, int] = {}  # retire steps that each log still needs
    notes = 0
    while (step := one.next_step()) is not None:
        match step:
            case Find(keys):
                assert 0 < len(keys) <= FIND_LOGS and not notes
                seen += keys
                if data.draw(st.booleans()):
                    starts = dict.fromkeys(keys[::7], 5)
                    planned |= starts
                    one.found(starts)
                else:
                    one.failed(step)
            case Note(starts):
                assert starts == planned
                notes += 1
                left = {each: 1 + each[1] % 3 for each in planned}
                one.noted()
            case Retire(starts):
                assert notes == 1 and 0 < len(starts) <= RETIRE_LOGS
                for each in starts:
                    left[each] -= 1
                one.retired([each for each in starts if not left[each]])
    assert seen == [key(number) for number in range(count)]
    assert notes == bool(planned) and not any(left.values())


@rule("storage 8.4")
def test_nothing_is_retired_where_the_note_failed() -> None:
    one = RetentionPass([key(1)])
    assert isinstance(one.next_step(), Find)
    one.found({key(1): 9})
    note = one.next_step()
    assert isinstance(note, Note)
    one.failed(note)
    assert one.next_step() is None


def test_a_log_that_cannot_be_retired_holds_up_no_other() -> None:
    one = RetentionPass(key(number) for number in range(RETIRE_LOGS + 1))
    one.next_step()
    one.found({key(number): 9 for number in range(RETIRE_LOGS + 1)})
    one.next_step()
    one.noted()
    first = one.next_step()
    assert isinstance(first, Retire)
    one.failed(first)
    assert one.next_step() == Retire({key(RETIRE_LOGS): 9})
