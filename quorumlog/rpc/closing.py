"""Callbacks for something that closes once."""

from __future__ import annotations

from collections.abc import Callable


class Closing:
    """Runs each callback exactly once, synchronously, in the order of registration."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        self.closed = False

    def on_closed(self, callback: Callable[[], None]) -> None:
        if self.closed:
            callback()
        else:
            self._callbacks.append(callback)

    def close(self) -> None:
        """Idempotent. If a callback raises, the others still run."""
        if self.closed:
            return
        self.closed = True
        callbacks, self._callbacks = self._callbacks, []
        errors = []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
