"""Tasks that a shell owns, kept in order.

`asyncio.TaskGroup`, `gather` and `wait` keep sets of tasks and iterate over them in the order of addresses, which no
seed can reproduce. A nursery starts, cancels and awaits its tasks in the order in which they were started.
It reports a task that ends with an unexpected exception to `on_crash`. A node passes its fail-stop here, because an
unhandled error must not leave a half-working process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
OnCrash = Callable[[str, BaseException], None]


class Nursery:
    """Owns tasks. Calls `on_crash(name, error)` once for each task that raised anything but cancellation."""

    def __init__(self, on_crash: OnCrash) -> None:
        self._on_crash = on_crash
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run `coroutine` as a task of this nursery. Its first step runs before that of any task started later."""
        assert not self._closed, f"nursery is closed: {name}"
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    async def close(self) -> None:
        """Cancel every task and wait until each has ended. A second call returns at once."""
        self._closed = True
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        for task in tasks:
            try:
                await task
            except asyncio.CancelledError:
                if current is not None and current.cancelling():
                    raise
            except Exception:
                pass  # the done callback has called on_crash

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_crash(task.get_name(), error)
