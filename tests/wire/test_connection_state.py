"""The state of a served connection: the table of phases, when answers are sent, and what an impossible event says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.wire.serving.connection_state import MAX_AT_ONCE, TRANSITIONS, ConnectionState, Happened, Phase, Sending

OPEN = {Phase.READING, Phase.PAUSED, Phase.DRAINING}


def in_phase(phase: Phase) -> ConnectionState:
    """Brought there by events."""
    ways: dict[Phase, list[Happened]] = {
        Phase.NEW: [],
        Phase.READING: [Happened.ACCEPTED],
        Phase.PAUSED: [Happened.ACCEPTED, Happened.BACKLOG],
        Phase.DRAINING: [Happened.ACCEPTED, Happened.PEER_ENDED],
        Phase.CLOSING: [Happened.ACCEPTED, Happened.CLOSED_BY_US],
        Phase.CLOSED: [Happened.ACCEPTED, Happened.SOCKET_LOST],
    }
    state = ConnectionState()
    for happened in ways[phase]:
        state.step(happened)
    assert state.phase is phase
    return state


@pytest.mark.parametrize("happened", Happened)
@pytest.mark.parametrize("phase", Phase)
def test_a_phase_follows_the_table_or_tells_what_went_wrong(phase: Phase, happened: Happened) -> None:
    state, after = in_phase(phase), TRANSITIONS[happened].get(phase)
    if after is None:
        with pytest.raises(AssertionError, match=f"{happened.name} in phase {phase.name}"):
            state.step(happened)
        assert state.phase is phase
    else:
        assert state.step(happened) is (after is not phase)
        assert state.phase is after
    assert state.is_open is (state.phase in OPEN)


def test_no_phase_leads_back() -> None:
    """But that reading is paused and resumed."""
    for row in TRANSITIONS.values():
        for before, after in row.items():
            assert after >= before or (before, after) == (Phase.PAUSED, Phase.READING)


def test_reading_is_paused_and_resumed_once_each() -> None:
    state = in_phase(Phase.READING)
    assert [state.has_backlog(backlog) for backlog in (False, True, True, False, False)] == [
        False,
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.CLOSING, Phase.CLOSED])
def test_a_connection_that_reads_no_more_is_not_paused(phase: Phase) -> None:
    state = in_phase(phase)
    assert not state.has_backlog(True) and not state.has_backlog(False)
    assert state.phase is phase


def test_nothing_is_begun_for_a_peer_that_takes_no_answers() -> None:
    state = in_phase(Phase.READING)
    assert not state.unsent(100, 100, 1.0) and state.may_begin
    assert not state.unsent(101, 100, 2.0) and not state.may_begin
    assert not state.unsent(26, 100, 3.0) and state.stalled_since_s == 2.0
    assert state.unsent(25, 100, 4.0) and state.may_begin and state.stalled_since_s is None


def test_other_connections_have_a_turn_after_some_requests_that_waited_for_nothing() -> None:
    state = in_phase(Phase.READING)
    assert [state.answered_at_once() for _ in range(MAX_AT_ONCE)] == [False] * (MAX_AT_ONCE - 1) + [True]
    assert not state.may_begin
    state.others_had_turn()
    assert state.may_begin


def test_an_answer_that_is_alone_is_sent_at_once_and_others_together() -> None:
    state = in_phase(Phase.READING)
    assert state.answer_ready(True) is Sending.IDLE
    assert [state.answer_ready(False) for _ in range(3)] == [Sending.SCHEDULED, None, None]
    state.sent_by_loop()
    assert state.sending is Sending.IDLE


@pytest.mark.parametrize("scheduled", [False, True])
def test_an_answer_that_is_ready_while_its_request_is_begun_is_sent_by_the_one_who_begins_it(scheduled: bool) -> None:
    state = in_phase(Phase.READING)
    if scheduled:
        state.answer_ready(False)
    before = state.sending
    state.begin()
    assert state.answer_ready(True) is None
    state.begun()
    assert state.sending is before


def test_impossible_events_of_sending_tell_what_went_wrong() -> None:
    state = in_phase(Phase.READING)
    with pytest.raises(AssertionError, match="sends answers in state IDLE"):
        state.sent_by_loop()
    with pytest.raises(AssertionError, match="without `begin`"):
        state.begun()
    state.begin()
    with pytest.raises(AssertionError, match="while another one"):
        state.begin()


@given(st.lists(st.sampled_from(["begin", "alone", "together"]), max_size=40))
def test_no_answer_is_left_unsent(events: list[str]) -> None:
    """An answer is sent now or later: by the code that begins a request, or by one callback of the loop."""
    state = in_phase(Phase.READING)
    is_beginning, callbacks = False, 0
    for event in events:
        if event == "begin":
            state.begun() if is_beginning else state.begin()
            is_beginning = not is_beginning
            continue
        what = state.answer_ready(event == "alone")
        callbacks += what is Sending.SCHEDULED
        assert what is Sending.IDLE or is_beginning or callbacks == 1
        assert callbacks <= 1
        assert (state.sending is Sending.SCHEDULED) is (callbacks == 1)
