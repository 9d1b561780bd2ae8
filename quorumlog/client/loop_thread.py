"""One background event loop for all blocking clients of a process.

Made at the first need and keyed by process id: after a fork (a PySpark worker) the child makes its own, and never
touches the parent's (SPARK F11).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="quorumlog-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run on the loop, wait here. TimeoutError cancels it: what it had sent by then may be carried out."""
        assert threading.current_thread() is not self._thread, "a blocking call on the client's own loop"
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise


_current: LoopThread | None = None
_lock = threading.Lock()


def loop_thread() -> LoopThread:
    """This process's loop, started if need be."""
    global _current
    with _lock:
        if _current is None or _current.pid != os.getpid():
            _current = LoopThread()
        return _current
