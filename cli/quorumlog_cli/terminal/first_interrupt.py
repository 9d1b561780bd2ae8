"""Ctrl-C asks a command to end in order. A second one ends it at once.

A KeyboardInterrupt comes between any two steps: also where records were taken from a consumer and are half printed, so
that nobody could say what to commit. So the first one is only noted, and wakes what waits.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType


class FirstInterrupt:
    """In the main thread, inside of `with`: `came` says whether there was one. wake: ends what may wait long then."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.came = False
        self._wake = wake
        self._before: signal._HANDLER = signal.SIG_DFL

    def __enter__(self) -> FirstInterrupt:
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.signal(signal.SIGINT, self._before)
        self._wake()
