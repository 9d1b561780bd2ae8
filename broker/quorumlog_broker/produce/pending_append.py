"""The result of an append, which a request may wait for."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from quorumlog.errors import ApiError
from quorumlog.ids import Offset
from quorumlog.turn import Signal, Turn


class AppendResult(NamedTuple):
    """base_offset: of the first record. log_append_time_ms: -1 unless the topic uses LogAppendTime."""

    base_offset: Offset
    log_start_offset: Offset
    log_append_time_ms: int = -1


class PendingAppend:
    """The result of an append. It can be awaited once, but need not be. The first call of `settle` counts.

    A signal is made only if it is awaited before it is settled: usually for one partition of a request. It then goes
    on at the end of the turn, when others of its appends may be settled, too. result: known once the append is queued;
    before that it can only fail.
    """

    __slots__ = ("_error", "_turn", "_waited_for", "is_settled", "result")

    def __init__(self, turn: Turn, result: AppendResult | None = None) -> None:
        self._turn = turn
        self.result = result
        self._error: ApiError | None = None
        self._waited_for: Signal | None = None
        self.is_settled = False

    def __await__(self) -> Generator[Any, None, AppendResult]:
        if not self.is_settled:
            assert self._waited_for is None, "a pending append is awaited once"
            self._waited_for = Signal()
            yield from self._waited_for
        if self._error is not None:
            raise self._error
        assert self.result is not None
        return self.result

    def settle(self, error: ApiError | None) -> None:
        if self.is_settled:
            return
        self.is_settled, self._error = True, error
        if self._waited_for is not None:
            self._waited_for.fire(self._turn)
