"""`with producer.transaction():` of the blocking producer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType

from quorumlog.client.handover.loop import LoopThread
from quorumlog.client.transactions.driver import TransactionScope


class BlockingTransaction:
    """handed_over: waits until the asynchronous producer has every record of the block."""

    def __init__(
        self, thread: LoopThread, scope: Callable[[], TransactionScope], handed_over: Callable[[], Awaitable[None]]
    ) -> None:
        self._thread, self._make, self._handed_over = thread, scope, handed_over
        self._scope: TransactionScope | None = None

    def __enter__(self) -> None:
        self._thread.run(self._begin())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.run(self._end(error))

    async def _begin(self) -> None:
        self._scope = self._make()
        await self._scope.__aenter__()

    async def _end(self, error: BaseException | None) -> None:
        assert self._scope is not None
        await self._handed_over()
        await self._scope.end(error)
