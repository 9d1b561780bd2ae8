"""What is put off to the end of a callback: when it runs, in which order, and what an error does to the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.turn import MAX_AT_END, Signal, Turn
from quorumlog.wire.serving.taskless import TasklessHandler


class Noted:
    def __init__(self) -> None:
        self.turn = Turn()
        self.events: list[str] = []

    def later(self, name: str) -> None:
        self.turn.later(partial(self.events.append, name))


def run(check: Callable[[Noted], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(10):
            await check(Noted())

    asyncio.run(main())


def test_what_is_put_off_runs_after_the_work_and_in_the_same_callback() -> None:
    async def check(noted: Noted) -> None:
        def work() -> None:
            noted.later("first")
            noted.later("second")
            noted.events.append("work")

        noted.turn.run(work)
        assert noted.events == ["work", "first", "second"]

    run(check)


def test_a_run_inside_of_a_run_leaves_the_end_to_the_outer_one() -> None:
    async def check(noted: Noted) -> None:
        def work() -> None:
            noted.turn.run(noted.later, "put off")
            noted.events.append("work")

        noted.turn.run(work)
        assert noted.events == ["work", "put off"]

    run(check)


def test_without_a_run_the_loop_does_it_in_its_next_turn() -> None:
    async def check(noted: Noted) -> None:
        noted.later("put off")
        assert noted.events == []
        await asyncio.sleep(0)
        assert noted.events == ["put off"]

    run(check)


def test_what_was_put_off_outside_runs_at_the_end_of_a_run_that_comes_first_and_only_once() -> None:
    async def check(noted: Noted) -> None:
        noted.later("outside")
        noted.turn.run(noted.later, "inside")
        assert noted.events == ["outside", "inside"]
        await asyncio.sleep(0)
        assert noted.events == ["outside", "inside"]

    run(check)


def test_an_error_of_the_work_or_of_a_callback_reaches_the_loop_and_loses_no_other_callback() -> None:
    async def check(noted: Noted) -> None:
        def fails() -> None:
            raise ZeroDivisionError

        def work() -> None:
            noted.later("first")
            noted.turn.later(fails)
            noted.later("last")
            raise KeyError

        with pytest.raises(ZeroDivisionError):
            noted.turn.run(work)
        assert noted.events == ["first"]
        await asyncio.sleep(0)
        assert noted.events == ["first", "last"]

    run(check)


def test_no_callback_of_the_loop_runs_more_than_its_share() -> None:
    async def check(noted: Noted) -> None:
        names = [f"{number}" for number in range(MAX_AT_END + 5)]
        noted.turn.run(lambda: [noted.later(name) for name in names] and None)
        assert noted.events == names[:MAX_AT_END]
        await asyncio.sleep(0)
        assert noted.events == names

    run(check)


@given(st.recursive(st.just(0), lambda inner: st.lists(inner, max_size=4), max_leaves=40))
def test_callbacks_run_once_and_in_their_order_whatever_they_put_off(tree: object) -> None:
    """A list puts off its elements, in order; a number puts off nothing."""

    async def check(noted: Noted) -> None:
        put_off: list[str] = []

        def put(node: object, name: str) -> None:
            noted.events.append(name)
            for number, child in enumerate(node if isinstance(node, list) else ()):
                put_off.append(f"{name}.{number}")
                noted.turn.later(partial(put, child, put_off[-1]))

        noted.turn.run(put, tree, "0")
        for _ in range(3):  # 40 of them need no second turn of the loop
            await asyncio.sleep(0)
        assert noted.events == ["0", *put_off]

    run(check)


async def _wait(noted: Noted, signal: Signal) -> None:
    try:
        await signal
        noted.events.append("went on")
    finally:
        noted.events.append("over")


def test_a_coroutine_without_a_task_goes_on_at_the_end_of_the_callback_that_fires() -> None:
    async def check(noted: Noted) -> None:
        signal = Signal()
        TasklessHandler(_wait(noted, signal), "a test", lambda _name, _error: None).go_on()

        def work() -> None:
            signal.fire(noted.turn)
            signal.fire(noted.turn)
            noted.events.append("fired")

        noted.turn.run(work)
        assert noted.events == ["fired", "went on", "over"]

    run(check)


def test_a_task_goes_on_as_after_any_future() -> None:
    async def check(noted: Noted) -> None:
        signal = Signal()
        task = asyncio.get_running_loop().create_task(_wait(noted, signal))
        await asyncio.sleep(0)
        noted.turn.run(signal.fire, noted.turn)
        assert noted.events == []
        await task
        assert noted.events == ["went on", "over"]

    run(check)


@pytest.mark.parametrize("fires_first", [True, False])
def test_a_cancelled_coroutine_does_not_go_on(fires_first: bool) -> None:
    async def check(noted: Noted) -> None:
        signal = Signal()
        handler = TasklessHandler(_wait(noted, signal), "a test", lambda _name, _error: None)
        handler.go_on()

        def work() -> None:
            if fires_first:
                signal.fire(noted.turn)
            handler.cancel()
            signal.fire(noted.turn)

        noted.turn.run(work)
        await asyncio.sleep(0)
        assert noted.events == ["over"]

    run(check)


def test_a_signal_that_fired_before_it_is_awaited_holds_nothing_up() -> None:
    async def check(noted: Noted) -> None:
        signal = Signal()
        signal.fire(noted.turn)
        TasklessHandler(_wait(noted, signal), "a test", lambda _name, _error: None).go_on()
        assert noted.events == ["went on", "over"]

    run(check)
