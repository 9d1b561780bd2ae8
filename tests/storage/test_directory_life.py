"""The life of a log directory: which events each state takes, and that generations that are over count no more."""

from __future__ import annotations

import contextlib
import gc
import itertools
import weakref
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_storage.writer.directory_life import (
    TRANSITIONS,
    DirectoryLife,
    DirectoryOffline,
    DirectoryState,
    Generation,
    LifeEvent,
)
from tests.rules import rule

S, E = DirectoryState, LifeEvent

WAYS = {  # how a new directory gets into each state
    S.OPENING: [],
    S.ONLINE: [E.OPENED],
    S.FAILED: [E.OPENED, E.FAILED],
    S.VERIFYING: [E.OPENED, E.FAILED, E.VERIFICATION_BEGAN],
    S.CLOSED: [E.CLOSED],
}
STAYS_FAILED = {(state, E.FAILED): state for state in (S.FAILED, S.CLOSED)}
VALID = {
    (S.OPENING, E.OPENED): S.ONLINE,
    (S.FAILED, E.VERIFICATION_BEGAN): S.VERIFYING,
    (S.VERIFYING, E.VERIFIED): S.ONLINE,
    **{(state, E.FAILED): S.FAILED for state in (S.OPENING, S.ONLINE, S.VERIFYING)},
    **{(state, E.CLOSED): S.CLOSED for state in S},
    **STAYS_FAILED,
}


def step(life: DirectoryLife, event: LifeEvent) -> bool:
    if event is E.FAILED:
        return life.fail(OSError("no such disk"), life.generation)
    return life.step(event, life.generation)


def life_in(state: DirectoryState) -> DirectoryLife:
    life = DirectoryLife("/data/d")
    for event in WAYS[state]:
        step(life, event)
    assert life.state is state
    return life


@pytest.mark.parametrize(("state", "event"), list(itertools.product(S, E)), ids=lambda one: one.value)
def test_every_state_takes_the_events_of_the_table_and_no_others(state: DirectoryState, event: LifeEvent) -> None:
    life = life_in(state)
    after = VALID.get((state, event))
    if after is None:
        with pytest.raises(AssertionError, match=f"/data/d: `{event.value}` in state `{state.value}`"):
            step(life, event)
        assert life.state is state
    else:
        assert step(life, event) == (after is not state)
        assert life.state is after


@rule("storage 7.7")
def test_the_table_is_whole() -> None:
    assert TRANSITIONS == VALID


def test_an_invalid_event_prints_the_story() -> None:
    life = life_in(S.VERIFYING)
    with pytest.raises(AssertionError) as caught:
        step(life, E.OPENED)
    assert str(caught.value) == (
        "log directory /data/d: `opened` in state `verifying` of generation 2; before that:\n"
        "  opening --opened--> online in generation 1\n"
        "  online --failed--> failed in generation 1\n"
        "  failed --verification began--> verifying in generation 1"
    )


def test_the_first_cause_is_kept_whichever_writer_met_it() -> None:
    life = life_in(S.ONLINE)
    first = life.generation.fail(OSError("first"))  # on a writer's thread
    assert life.state is S.ONLINE and life.generation.is_usable, "the loop has not been told yet"
    assert life.generation.fail(OSError("second")).cause is first.cause
    assert life.fail(first, life.generation)
    assert not life.fail(OSError("third"), life.generation)
    assert life.failure is not None and life.failure.cause is first.cause and "first" in str(first)


def test_a_directory_that_comes_back_is_a_new_generation() -> None:
    life = life_in(S.ONLINE)
    first = life.generation
    step(life, E.FAILED)
    assert not first.is_usable and not first.is_over
    step(life, E.VERIFICATION_BEGAN)
    second = life.generation
    assert (first.number, second.number) == (1, 2)
    assert (first.is_usable, first.is_over) == (False, True)
    assert second.is_usable and not second.is_over and life.failure is None
    step(life, E.VERIFIED)
    assert life.is_online and life.generation is second


@pytest.mark.parametrize("event", list(E), ids=lambda event: event.value)
@pytest.mark.parametrize("state", [S.VERIFYING, S.ONLINE], ids=lambda state: state.value)
def test_an_event_of_a_generation_that_is_over_changes_nothing(state: DirectoryState, event: LifeEvent) -> None:
    life = life_in(S.FAILED)
    first = life.generation
    step(life, E.VERIFICATION_BEGAN)
    if state is S.ONLINE:
        step(life, E.VERIFIED)
    second = life.generation
    assert not (life.fail(OSError("late"), first) if event is E.FAILED else life.step(event, first))
    assert life.state is state and life.generation is second
    assert second.is_usable and life.failure is None


@given(st.lists(st.tuples(st.sampled_from(E), st.integers(0, 3)), max_size=30))
def test_any_events_leave_one_usable_generation_at_most(events: list[tuple[LifeEvent, int]]) -> None:
    life = DirectoryLife("/data/d")
    generations = [life.generation]
    for event, age in events:
        generation = generations[max(0, len(generations) - 1 - age)]
        if generation is life.generation and (life.state, event) not in TRANSITIONS:
            continue
        if event is E.FAILED:
            life.fail(OSError("disk"), generation)
        else:
            life.step(event, generation)
        if life.generation is not generations[-1]:
            generations.append(life.generation)
        usable = [one for one in generations if one.is_usable]
        assert usable == ([life.generation] if life.state in (S.OPENING, S.ONLINE, S.VERIFYING) else [])
        assert all(one.is_over for one in generations[:-1]) and not generations[-1].is_over
        assert isinstance(life.failure, DirectoryOffline) or life.state is not S.FAILED


def test_the_failure_that_is_kept_holds_no_frames_of_those_who_met_it() -> None:
    class Held:
        """In the place of a log."""

    generation = Generation("/d0")
    seen: list[weakref.ref[Held]] = []

    def meet(raised: Callable[[], BaseException]) -> None:
        held = Held()
        seen.append(weakref.ref(held))
        raise raised()

    def fail() -> BaseException:
        try:
            meet(lambda: OSError("EIO"))
        except OSError as error:
            return generation.fail(error)
        raise AssertionError("not reached")

    def again() -> BaseException:
        failure = generation.failure
        assert failure is not None and str(failure.cause) == "EIO"
        return failure

    fail()
    for _ in range(3):
        with contextlib.suppress(DirectoryOffline):
            meet(again)
    gc.collect()
    assert len(seen) == 4 and not [one for one in seen if one() is not None]
