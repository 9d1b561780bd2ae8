"""What waits for an answer of the core, by token: requests of other nodes, reads to be confirmed, upgrades."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from quorumlog.errors import ApiError
from quorumlog_quorum.raft import RaftEvent


class OpenAsks:
    """The transport bounds their number. What nobody waits for any more is forgotten at once."""

    def __init__(self, give: Callable[[RaftEvent], None]) -> None:
        """give: takes an event to the core."""
        self._give = give
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_token = 0

    def ask(self, event: Callable[[int], RaftEvent]) -> asyncio.Future[Any]:
        """Give the core the event of a new token, at once. The future raises what `refuse` and `fail` are given."""
        self._last_token += 1
        token = self._last_token
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[token] = future
        future.add_done_callback(lambda _: self._waiting.pop(token, None))
        self._give(event(token))
        return future

    def answer(self, token: int, value: Any) -> None:
        """Nothing happens if nobody waits for it any more."""
        future = self._waiting.get(token)
        if future is not None and not future.done():
            future.set_result(value)

    def refuse(self, token: int, error: ApiError) -> None:
        """As `answer`."""
        future = self._waiting.get(token)
        if future is not None and not future.done():
            future.set_exception(error)

    def fail(self, error: ApiError) -> None:
        """Refuse all that wait."""
        for token in list(self._waiting):
            self.refuse(token, error)
