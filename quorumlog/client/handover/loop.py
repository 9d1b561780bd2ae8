"""The hand-written base of the blocking clients, and the one background loop that all those of a process share.

The loop is created on first use and belongs to one process id: after a fork (a PySpark worker) the child creates its
own loop and never touches the parent's. At exit, tasks of clients that were not closed are cancelled, so that the
interpreter reports no pending task. Records that were not flushed are lost then, as with any client.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")
END_TIMEOUT_S = 2.0  # at exit, for tasks that do not end when cancelled


class LoopThread:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="quorumlog-client", daemon=True)
        self._thread.start()
        atexit.register(self.end)

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run on the loop and wait here. TimeoutError cancels the coroutine; what it had sent may still take effect."""
        assert threading.current_thread() is not self._thread, "a blocking call on the client's own loop"
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def end(self) -> None:
        """Cancel what still runs, then stop the loop. A forked child has no such thread and stays silent."""
        if self.pid != os.getpid():
            self.loop.set_exception_handler(lambda _loop, _context: None)
        elif self._thread.is_alive():
            self.loop.call_soon_threadsafe(lambda: self.loop.create_task(self._end()))
            self._thread.join(END_TIMEOUT_S)

    async def _end(self) -> None:
        own = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not own]
        for task in tasks:
            task.cancel()
        for task in tasks:
            try:
                await task
            except (Exception, asyncio.CancelledError):
                pass  # no caller waits for this task any more
        self.loop.stop()


_current: LoopThread | None = None
_lock = threading.Lock()


def loop_thread() -> LoopThread:
    """This process's loop thread, started on first use."""
    global _current
    with _lock:
        if _current is None or _current.pid != os.getpid():
            _current = LoopThread()
        return _current


async def on_loop(read: Callable[[], T]) -> T:
    """On the loop, where nothing changes meanwhile."""
    return read()


Self = TypeVar("Self", bound="Blocking")


class Blocking:
    """Creates its asynchronous client on the background loop and closes it there."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._thread = loop_thread()
        self._closed = False
        self._client = self._thread.run(self._make(make))

    @staticmethod
    async def _make(make: Callable[[], Any]) -> Any:
        return make()  # on the loop: a transport belongs to one event loop

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Idempotent."""
        if not self._closed:
            self._closed = True
            self._thread.run(self._client.close())
