"""`async with producer.transaction():` commits at the end of the block, and aborts on an exception."""

from __future__ import annotations

from types import TracebackType

from quorumlog.client.errors import QuorumlogError
from quorumlog.client.transactions.driver import TransactionDriver
from quorumlog.client.transactions.errors import TransactionFailed
from quorumlog.client.transactions.machine import Phase


class TransactionScope:
    """One transaction. A block that has ended it by itself, with `commit` or `abort`, is left as it is."""

    def __init__(self, driver: TransactionDriver) -> None:
        self._driver = driver
        self._serial = -1

    async def __aenter__(self) -> None:
        await self._driver.begin()
        self._serial = self._driver.machine.serial

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end(error)

    async def end(self, error: BaseException | None) -> None:
        """Raises what `commit` raises. An error of the block is never replaced by one of the abort."""
        if not self._is_open:
            return
        if error is not None:
            await self._abort(error)
            return
        try:
            await self._driver.commit()
        except TransactionFailed as failed:
            await self._abort(failed)
            raise

    @property
    def _is_open(self) -> bool:
        machine = self._driver.machine
        return machine.serial == self._serial and machine.phase in (Phase.OPEN, Phase.COMMITTING)

    async def _abort(self, error: BaseException) -> None:
        try:
            await self._driver.abort()
        except QuorumlogError as failed:
            error.add_note(f"the transaction could not be aborted, so it is left to time out: {failed}")
