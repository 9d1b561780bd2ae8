"""InitProducerId of a transactional id: an epoch that fences every earlier producer of it (KIP-98, KIP-360).

The rules are Kafka's, `prepareInitProducerIdTransit`:

1. An open transaction is aborted first, and the producer asks again. That epoch is told to nobody.
2. A producer that says which id and epoch it has must be the current one; or it repeats a call whose answer was lost,
   and is given the same epoch again. Another one has taken its place: PRODUCER_FENCED. Unlike in Kafka that holds
   while a transaction is open, too: a late producer aborts nothing.
3. When the epochs of a producer id run out, the transactional id gets another producer id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from quorumlog.records.coordinator.transactions import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TransactionValue,
)
from quorumlog.settings.transactions import MAX_ID_BYTES, TransactionConfig
from quorumlog_broker.coordinator.transactions.end import Ending
from quorumlog_broker.coordinator.transactions.state.states import States, TransactionTurn, told
from quorumlog_broker.coordinator.transactions.state.table import EMPTY, LAST_EPOCH, ONGOING, PREPARED, TransactionTable
from quorumlog_broker.coordinator.turn import Call


class _Next(NamedTuple):
    """last_epoch: what a repeated call would say; -1: none can be repeated."""

    producer_id: int
    producer_epoch: int
    last_epoch: int


class InitProducer:
    """new_producer_id: one that was never given out; None while the controller is asked for more."""

    def __init__(
        self,
        turn: TransactionTurn,
        config: TransactionConfig,
        table: TransactionTable,
        states: States,
        ending: Ending,
        new_producer_id: Callable[[], int | None],
    ) -> None:
        self._turn, self._config, self._table, self._states = turn, config, table, states
        self._ending, self._new_producer_id = ending, new_producer_id

    def call(self, call: Call, request: InitProducerIdRequest) -> None:
        transactional_id = request.transactional_id or ""
        error = self._invalid(transactional_id, request)
        before = self._table.get(transactional_id)
        found: _Next | ErrorCode
        if error != ErrorCode.NONE:
            found = error
        elif before is None:
            found = self._first()
        elif before.joint is not None:
            found = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED  # BeginJoint gives its epochs
        elif before.transaction_status in PREPARED:
            found = ErrorCode.CONCURRENT_TRANSACTIONS
        elif before.transaction_status == ONGOING:
            self._abort_first(call, transactional_id, before, request)
            return
        else:
            found = self._next(transactional_id, before, request)
        if isinstance(found, ErrorCode):
            self._refuse(call, request, found)
        else:
            self._begin(call, transactional_id, before, found, request.transaction_timeout_ms)

    def _invalid(self, transactional_id: str, request: InitProducerIdRequest) -> ErrorCode:
        half_told = (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH)
        if half_told or len(transactional_id.encode()) > MAX_ID_BYTES:
            return ErrorCode.INVALID_REQUEST
        if transactional_id and not 0 < request.transaction_timeout_ms <= self._config.max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return self._states.refusal(transactional_id)

    def _refuse(self, call: Call, request: InitProducerIdRequest, error: ErrorCode) -> None:
        error = told(error, takes_producer_fenced=request.takes_producer_fenced)
        self._turn.answer(call.number, InitProducerIdResponse(error_code=error))

    # --- which epoch ---

    def _first(self) -> _Next | ErrorCode:
        """Of an id that is new or was forgotten, whatever its producer remembers."""
        if len(self._table) >= self._config.max_ids:
            return ErrorCode.POLICY_VIOLATION
        return self._another_producer_id(NO_PRODUCER_EPOCH)

    def _next(
        self, transactional_id: str, before: TransactionValue, request: InitProducerIdRequest
    ) -> _Next | ErrorCode:
        producer_id, epoch = before.producer_id, before.producer_epoch
        last_epoch = NO_PRODUCER_EPOCH
        if request.producer_id != NO_PRODUCER_ID:
            if self._is_repeated(transactional_id, before, request):
                return _Next(producer_id, epoch, self._table.last_epoch(transactional_id))
            if (request.producer_id, request.producer_epoch) != (producer_id, epoch):
                return ErrorCode.PRODUCER_FENCED
            last_epoch = epoch
        if epoch >= LAST_EPOCH:
            return self._another_producer_id(last_epoch)
        return _Next(producer_id, epoch + 1, last_epoch)

    def _is_repeated(self, transactional_id: str, before: TransactionValue, request: InitProducerIdRequest) -> bool:
        if request.producer_epoch != self._table.last_epoch(transactional_id):
            return False
        if request.producer_epoch == LAST_EPOCH:  # then it was the last one of its id
            return request.producer_id == before.previous_producer_id != before.producer_id
        return request.producer_id == before.producer_id

    def _another_producer_id(self, last_epoch: int) -> _Next | ErrorCode:
        producer_id = self._new_producer_id()
        if producer_id is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return _Next(producer_id, 0, last_epoch)

    # --- what then ---

    def _abort_first(
        self, call: Call, transactional_id: str, before: TransactionValue, request: InitProducerIdRequest
    ) -> None:
        current = (before.producer_id, before.producer_epoch)
        if request.producer_id != NO_PRODUCER_ID and (request.producer_id, request.producer_epoch) != current:
            self._refuse(call, request, ErrorCode.PRODUCER_FENCED)
            return
        error = self._ending.fence(transactional_id)
        if error == ErrorCode.NONE:
            response = InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
            self._turn.answer_after_commit(call.number, response)
        else:
            self._refuse(call, request, error)

    def _begin(
        self, call: Call, transactional_id: str, before: TransactionValue | None, found: _Next, timeout_ms: int
    ) -> None:
        value = TransactionValue(
            found.producer_id,
            found.producer_epoch,
            timeout_ms,
            EMPTY,
            None,
            self._turn.wall_ms,
            NO_TIMESTAMP,
            previous_producer_id=_previous(before, found),
        )
        self._states.put(transactional_id, value, last_epoch=found.last_epoch)
        response = InitProducerIdResponse(producer_id=found.producer_id, producer_epoch=found.producer_epoch)
        self._turn.answer_after_commit(call.number, response)


def _previous(before: TransactionValue | None, found: _Next) -> int:
    """A repeated call may be repeated once more: an id that ran out stays known."""
    if before is None:
        return found.producer_id
    is_repeated = (found.producer_id, found.producer_epoch) == (before.producer_id, before.producer_epoch)
    return before.previous_producer_id if is_repeated else before.producer_id
