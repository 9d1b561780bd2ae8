"""The end of a callback of the loop: what many events of one callback ask for is done once, after the last of them.

A writer that reports a turn of appends, or a socket that delivers several requests, moves many partitions in one
callback. What follows (the answer to a fetch that waited, the next fetch of a follower) must not run in the middle of
a partition's step, and should see all that moved. `call_soon` gives both, but costs a further turn of the loop: it
polls the kernel and gives up the interpreter's lock, which the writer's thread may keep for long.

So the edges that deliver such events (the lane's sockets, the workers' answers) run them by `Turn.run`, and what is put
off by `later` runs when that returns. Everywhere else `later` is `call_soon`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from quorumlog.slices import Sliced

Result = TypeVar("Result")

MAX_AT_END = 64  # callbacks at the end of one callback of the loop; the rest run in its next turn


class Turn:
    """Used on one loop. Callbacks run in the order of their `later`, each once."""

    __slots__ = ("_is_open", "_is_scheduled", "_waiting")

    def __init__(self) -> None:
        self._is_open = self._is_scheduled = False
        self._waiting: list[Callable[[], None]] = []

    def run(self, work: Callable[..., None], *what: Any) -> None:
        """Run `work(*what)`, and then what is put off. Inside of another `run`, the outer one does the latter."""
        if self._is_open:
            work(*what)
            return
        self._is_open = True
        try:
            work(*what)
        finally:
            self._is_open = False
            if self._waiting:
                self._end()

    def later(self, callback: Callable[[], None]) -> None:
        """Run `callback` when the current `run` ends; if there is none, in the loop's next turn."""
        self._waiting.append(callback)
        if not self._is_open:
            self._schedule()

    def _end(self) -> None:
        """A callback may put off another one, and may raise: the loop is told, and the others run in its next turn."""
        self._is_open = True
        done = 0
        try:
            while done < len(self._waiting) and done < MAX_AT_END:
                done += 1
                self._waiting[done - 1]()
        finally:
            self._is_open = False
            del self._waiting[:done]
            if self._waiting:
                self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._run_scheduled)

    def _run_scheduled(self) -> None:
        self._is_scheduled = False
        if self._waiting:
            self._end()


class Signal(asyncio.Future[None]):
    """Something that one coroutine waits for. A coroutine without a task (quorumlog/wire/serving/taskless.py) goes on
    when the callback that fires the signal ends.

    resume: set by what runs the coroutine; None: the coroutine is a task's, and goes on as after any future.
    """

    resume: Callable[[], None] | None = None

    def fire(self, turn: Turn) -> None:
        """The first call counts; one after a cancellation does not."""
        if self.done():
            return
        self.set_result(None)
        if self.resume is not None:
            turn.later(self.resume)


async def in_turns(work: Sliced[Result]) -> Result:
    """The first slice in this turn of the loop, and each other one in a turn of its own."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result
        await asyncio.sleep(0)
