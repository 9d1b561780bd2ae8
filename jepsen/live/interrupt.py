"""Ctrl-C and SIGTERM end a run early. What is raised may be lost, so that it was asked for is noted, too.

Python raises KeyboardInterrupt wherever the main thread is. In a callback of a library, or in a destructor, it is
printed and dropped.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

_asked = threading.Event()


def listen() -> None:
    """From now on, in the main thread."""
    _asked.clear()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)


def look() -> None:
    """Raises KeyboardInterrupt if a signal has come since `listen`, once."""
    if _asked.is_set():
        _asked.clear()
        raise KeyboardInterrupt


def _on_signal(_number: int, _frame: FrameType | None) -> None:
    _asked.set()
    raise KeyboardInterrupt
