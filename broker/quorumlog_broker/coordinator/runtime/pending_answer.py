"""The answer to a call that a coordinator's core has taken."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from quorumlog.errors import ApiError
from quorumlog.turn import Signal, Turn


class PendingAnswer:
    """It can be awaited once, by a handler with or without a task. The first of `answer` and `fail` counts."""

    __slots__ = ("_error", "_response", "_turn", "_waited_for", "is_settled")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._response: Any = None
        self._error: ApiError | None = None
        self._waited_for: Signal | None = None
        self.is_settled = False

    def __await__(self) -> Generator[Any, None, Any]:
        """The core's response. Raises the ApiError of `fail`."""
        if not self.is_settled:
            assert self._waited_for is None, "a pending answer is awaited once"
            self._waited_for = Signal()
            yield from self._waited_for
        if self._error is not None:
            raise self._error
        return self._response

    def answer(self, response: Any) -> None:
        self._settle(response, None)

    def fail(self, error: ApiError) -> None:
        self._settle(None, error)

    def _settle(self, response: Any, error: ApiError | None) -> None:
        if self.is_settled:
            return
        self.is_settled, self._response, self._error = True, response, error
        if self._waited_for is not None:
            self._waited_for.fire(self._turn)
