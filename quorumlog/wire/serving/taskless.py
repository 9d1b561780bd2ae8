"""Running a handler without a task, for requests that come by the thousand.

The first step runs at once, in the turn of the loop that received the request; each further step runs when the future
that the handler awaits is done, or, if that is a `Signal`, at the end of the callback that fired it. A task would need
one more turn of the loop to begin and one to end, and each turn polls the kernel and releases the interpreter's lock.
The handler cannot use `asyncio.timeout` and `current_task`, which need a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from quorumlog.nursery import OnCrash
from quorumlog.rpc.serving.request_parts import RequestBook, Timing
from quorumlog.turn import Signal


class TasklessHandler:
    """on_crash(name, error) is called once if the coroutine raises anything. timing: measures its steps."""

    __slots__ = ("_book", "_coroutine", "_is_running", "_name", "_on_crash", "_timing", "has_ended")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, None],
        name: str,
        on_crash: OnCrash,
        timing: Timing | None = None,
        book: RequestBook | None = None,
    ) -> None:
        self._coroutine, self._name, self._on_crash = coroutine, name, on_crash
        self._timing, self._book = timing, book
        self.has_ended = self._is_running = False

    def go_on(self, _awaited: object = None) -> None:
        """One step, to the next await or to the end."""
        if self.has_ended:
            return
        self._is_running = True
        timing, book = self._timing, self._book
        if timing is not None and book is not None:
            timing.step(book.now_s())
        try:
            awaited = self._coroutine.send(None)
        except (StopIteration, asyncio.CancelledError):  # what it awaits was cancelled; so is it, as a task would be
            self.has_ended = True
        except Exception as error:
            self.has_ended = True
            self._on_crash(self._name, error)
        else:
            self._wait_for(awaited)
        finally:
            self._is_running = False
            if timing is not None and book is not None:
                timing.rest(book.now_s())

    def cancel(self) -> None:
        """Like a task's, but the coroutine's `finally` clauses run before this returns, or at the end of its step."""
        if not self.has_ended:
            self.has_ended = True
            if not self._is_running:
                self._coroutine.close()

    def _wait_for(self, awaited: asyncio.Future[Any] | None) -> None:
        if self.has_ended:
            self._coroutine.close()  # it was cancelled by its own step
        elif awaited is None:  # a bare yield: asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(self.go_on)
        elif type(awaited) is Signal and not awaited.done():
            awaited.resume = self.go_on
        else:
            awaited.add_done_callback(self.go_on)
