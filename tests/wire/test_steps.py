"""A coroutine that runs without a task: when it runs, how it ends, and how it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from quorumlog.wire.steps import Steps


class Told:
    """Notes what happens, in order, and has a coroutine that does."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.crashes: list[str] = []

    def steps(self, coroutine: Coroutine[Any, Any, None]) -> Steps:
        return Steps(coroutine, "a test", lambda name, error: self.crashes.append(f"{name}: {error!r}"))

    async def wait(self, awaited: Awaitable[Any]) -> None:
        self.events.append("begun")
        try:
            self.events.append(f"got {await awaited}")
        finally:
            self.events.append("over")


def run(check: Callable[[Told], Awaitable[None]]) -> None:
    async def main() -> None:
        unexpected: list[str] = []  # an error that reaches the loop stops a node
        asyncio.get_running_loop().set_exception_handler(lambda _loop, what: unexpected.append(str(what)))
        async with asyncio.timeout(10):
            await check(Told())
        assert unexpected == []

    asyncio.run(main())


def test_the_first_step_runs_at_once_and_the_next_when_the_future_is_done() -> None:
    async def check(told: Told) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        steps = told.steps(told.wait(future))
        steps.go_on()
        assert told.events == ["begun"]
        future.set_result(7)
        await asyncio.sleep(0)
        assert told.events == ["begun", "got 7", "over"] and steps.has_ended

    run(check)


def test_a_coroutine_that_waits_for_nothing_ends_at_once() -> None:
    async def check(told: Told) -> None:
        async def nothing() -> None:
            told.events.append("done")

        steps = told.steps(nothing())
        steps.go_on()
        assert told.events == ["done"] and steps.has_ended

    run(check)


def test_a_coroutine_goes_on_in_the_next_turn_after_a_bare_yield() -> None:
    async def check(told: Told) -> None:
        told.steps(told.wait(asyncio.sleep(0, result="up"))).go_on()
        await asyncio.sleep(0)
        assert told.events == ["begun", "got up", "over"]

    run(check)


def test_the_error_of_a_future_is_raised_where_it_is_awaited_and_reported_once() -> None:
    async def check(told: Told) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        told.steps(told.wait(future)).go_on()
        future.set_exception(OSError("no disk"))
        await asyncio.sleep(0)
        assert told.events == ["begun", "over"]
        assert told.crashes == ["a test: OSError('no disk')"]

    run(check)


def test_a_coroutine_that_awaits_a_cancelled_future_ends_quietly() -> None:
    async def check(told: Told) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        steps = told.steps(told.wait(future))
        steps.go_on()
        future.cancel()
        await asyncio.sleep(0)
        assert told.events == ["begun", "over"] and steps.has_ended and told.crashes == []

    run(check)


def test_cancelling_runs_finally_clauses_and_nothing_wakes_the_coroutine_later() -> None:
    async def check(told: Told) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        steps = told.steps(told.wait(future))
        steps.go_on()
        steps.cancel()
        assert told.events == ["begun", "over"]
        future.set_result(7)
        await asyncio.sleep(0)
        steps.cancel()
        assert told.events == ["begun", "over"] and told.crashes == []

    run(check)


def test_a_coroutine_cancelled_by_its_own_step_ends_at_the_end_of_the_step() -> None:
    async def check(told: Told) -> None:
        async def cut_off() -> None:
            steps.cancel()
            told.events.append("still here")
            await told.wait(asyncio.get_running_loop().create_future())

        steps = told.steps(cut_off())
        steps.go_on()
        assert told.events == ["still here", "begun", "over"] and told.crashes == []

    run(check)
