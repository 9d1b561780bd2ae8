"""A handler carried on by what it awaits, without a task of its own: for requests that come by the thousand.

Its first step is made at once, in the turn of the loop that brought the request; each further one by the future that it
waits for. A task would take one turn of the loop more to begin and one more to end, and each turn asks the kernel for
news and lets go of Python's lock. It has to do without what only a task has: `asyncio.timeout` and `current_task`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from quorumlog.nursery import OnCrash


class Steps:
    """on_crash(name, error) is called once if the coroutine raises anything."""

    __slots__ = ("_coroutine", "_is_at_work", "_name", "_on_crash", "has_ended")

    def __init__(self, coroutine: Coroutine[Any, Any, None], name: str, on_crash: OnCrash) -> None:
        self._coroutine, self._name, self._on_crash = coroutine, name, on_crash
        self.has_ended = self._is_at_work = False

    def go_on(self, _awaited: object = None) -> None:
        """One step, to the next await or to the end."""
        if self.has_ended:
            return
        self._is_at_work = True
        try:
            awaited = self._coroutine.send(None)
        except (StopIteration, asyncio.CancelledError):  # what it waits for was cancelled: so is it, as a task would be
            self.has_ended = True
        except Exception as error:
            self.has_ended = True
            self._on_crash(self._name, error)
        else:
            self._wait_for(awaited)
        finally:
            self._is_at_work = False

    def cancel(self) -> None:
        """Like a task's; the coroutine's `finally` clauses have run when this returns, or at the end of its step."""
        if not self.has_ended:
            self.has_ended = True
            if not self._is_at_work:
                self._coroutine.close()

    def _wait_for(self, awaited: asyncio.Future[Any] | None) -> None:
        if self.has_ended:
            self._coroutine.close()  # cancelled while it was at work
        elif awaited is None:  # a bare yield: asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(self.go_on)
        else:
            awaited.add_done_callback(self.go_on)
