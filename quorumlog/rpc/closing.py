"""Something that closes once, and who wants to be told."""

from __future__ import annotations

from collections.abc import Callable


class Closing:
    """Callbacks run synchronously, in the order in which they were added, each exactly once."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        self.closed = False

    def on_closed(self, callback: Callable[[], None]) -> None:
        if self.closed:
            callback()
        else:
            self._callbacks.append(callback)

    def close(self) -> None:
        """Idempotent. A callback that raises does not keep the others from being told."""
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
