"""A coroutine that runs without a task: when it runs, how it ends, and how it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from quorumlog.wire.serving.taskless import TasklessHandler


class Recorder:
    """Notes what happens, in order, and has a coroutine that does."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.crashes: list[str] = []

    def handler(self, coroutine: Coroutine[Any, Any, None]) -> TasklessHandler:
        return TasklessHandler(coroutine, "a test", lambda name, error: self.crashes.append(f"{name}: {error!r}"))

    async def wait(self, awaited: Awaitable[Any]) -> None:
        self.events.append("begun")
        try:
            self.events.append(f"got {await awaited}")
        finally:
            self.events.append("over")


def run(check: Callable[[Recorder], Awaitable[None]]) -> None:
    async def main() -> None:
        unexpected: list[str] = []  # an error that reaches the loop stops a node
        asyncio.get_running_loop().set_exception_handler(lambda _loop, what: unexpected.append(str(what)))
        async with asyncio.timeout(10):
            await check(Recorder())
        assert unexpected == []

    asyncio.run(main())


def test_the_first_step_runs_at_once_and_the_next_when_the_future_is_done() -> None:
    async def check(recorder: Recorder) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        handler = recorder.handler(recorder.wait(future))
        handler.go_on()
        assert recorder.events == ["begun"]
        future.set_result(7)
        await asyncio.sleep(0)
        assert recorder.events == ["begun", "got 7", "over"] and handler.has_ended

    run(check)


def test_a_coroutine_that_waits_for_nothing_ends_at_once() -> None:
    async def check(recorder: Recorder) -> None:
        async def nothing() -> None:
            recorder.events.append("done")

        handler = recorder.handler(nothing())
        handler.go_on()
        assert recorder.events == ["done"] and handler.has_ended

    run(check)


def test_a_coroutine_goes_on_in_the_next_turn_after_a_bare_yield() -> None:
    async def check(recorder: Recorder) -> None:
        recorder.handler(recorder.wait(asyncio.sleep(0, result="up"))).go_on()
        await asyncio.sleep(0)
        assert recorder.events == ["begun", "got up", "over"]

    run(check)


def test_the_error_of_a_future_is_raised_where_it_is_awaited_and_reported_once() -> None:
    async def check(recorder: Recorder) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        recorder.handler(recorder.wait(future)).go_on()
        future.set_exception(OSError("no disk"))
        await asyncio.sleep(0)
        assert recorder.events == ["begun", "over"]
        assert recorder.crashes == ["a test: OSError('no disk')"]

    run(check)


def test_a_coroutine_that_awaits_a_cancelled_future_ends_quietly() -> None:
    async def check(recorder: Recorder) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        handler = recorder.handler(recorder.wait(future))
        handler.go_on()
        future.cancel()
        await asyncio.sleep(0)
        assert recorder.events == ["begun", "over"] and handler.has_ended and recorder.crashes == []

    run(check)


def test_cancelling_runs_finally_clauses_and_nothing_wakes_the_coroutine_later() -> None:
    async def check(recorder: Recorder) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        handler = recorder.handler(recorder.wait(future))
        handler.go_on()
        handler.cancel()
        assert recorder.events == ["begun", "over"]
        future.set_result(7)
        await asyncio.sleep(0)
        handler.cancel()
        assert recorder.events == ["begun", "over"] and recorder.crashes == []

    run(check)


def test_a_coroutine_cancelled_by_its_own_step_ends_at_the_end_of_the_step() -> None:
    async def check(recorder: Recorder) -> None:
        async def cut_off() -> None:
            handler.cancel()
            recorder.events.append("still here")
            await recorder.wait(asyncio.get_running_loop().create_future())

        handler = recorder.handler(cut_off())
        handler.go_on()
        assert recorder.events == ["still here", "begun", "over"] and recorder.crashes == []

    run(check)
