"""What the blocking clients share."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from quorumlog.client.loop_thread import loop_thread

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
