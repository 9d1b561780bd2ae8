"""EndTxn, and the coordinator's own aborts. A transaction is decided once its Prepare record is committed.

A producer of transaction.version 2 (TV2, KIP-890 part 2) has an epoch for each transaction: Prepare raises it, the
markers bear the raised one, and the answer tells it. So a request that comes late is of an older epoch. Where the
epochs run out, the raised one is for the markers only, and the next transaction has another producer id.

The request says by which rules its producer goes, and the answer is by these. The feature level in force has no say: it
may change, or be known late, while the producer runs, and one that expects another epoch and is told the old one
begins its sequences anew under it. Its batches would pass for repetitions, and be lost (decision 0080).

An abort of the coordinator's own is for no producer's call. Its epoch is raised as TV1 has it, so that an EndTxn of the
producer is never taken for a repetition of the abort: it is told that it is fenced.

The tables are those of Kafka's `endTransaction` and `endTransactionWithTV1`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.messages.transactions import EndTxnRequest, EndTxnResponse
from quorumlog.records.coordinator.transactions import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TransactionValue
from quorumlog_broker.coordinator.transactions.state.completion import Completion
from quorumlog_broker.coordinator.transactions.state.states import (
    States,
    TransactionTurn,
    is_next_producer,
    rules_of,
    told,
)
from quorumlog_broker.coordinator.transactions.state.table import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    COMPLETES,
    EMPTY,
    LAST_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    TransactionTable,
)
from quorumlog_broker.coordinator.turn import Call
from quorumlog_storage.producers.producer_state import EPOCH_PER_TRANSACTION


class Ending:
    """new_producer_id: see `InitProducer`."""

    def __init__(
        self,
        turn: TransactionTurn,
        table: TransactionTable,
        states: States,
        completion: Completion,
        new_producer_id: Callable[[], int | None],
    ) -> None:
        self._turn, self._table, self._states, self._completion = turn, table, states, completion
        self._new_producer_id = new_producer_id

    # --- a producer's call ---

    def call(self, call: Call, request: EndTxnRequest) -> None:
        transactional_id = request.transactional_id
        version = rules_of(request.transaction_version)
        error = self._states.refusal(transactional_id)
        before = self._table.get(transactional_id)
        if error == ErrorCode.NONE and before is None:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if error == ErrorCode.NONE and before is not None and before.joint is not None:
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED  # the group's own calls end it
        if error != ErrorCode.NONE or before is None:
            self._refuse(call, request, error)
            return
        answer = _end_by_epoch if version >= EPOCH_PER_TRANSACTION else _end
        found = answer(before, request)
        if found is None:
            error = self._prepare(transactional_id, before, committed=request.committed, version=version)
            if error != ErrorCode.NONE:
                self._refuse(call, request, error)
                return
            self._turn.answer_after_commit(call.number, self._done(transactional_id, request))
        elif found == ErrorCode.NONE:
            self._turn.answer(call.number, self._done(transactional_id, request))
        else:
            self._refuse(call, request, found)

    def _refuse(self, call: Call, request: EndTxnRequest, error: ErrorCode) -> None:
        error = told(error, takes_producer_fenced=request.takes_producer_fenced)
        self._turn.answer(call.number, EndTxnResponse(error_code=error))

    def _done(self, transactional_id: str, request: EndTxnRequest) -> EndTxnResponse:
        """With what the next transaction has, also where its id is not in force yet."""
        value = self._table.get(transactional_id)
        assert value is not None
        if request.transaction_version < EPOCH_PER_TRANSACTION:
            return EndTxnResponse()
        if value.next_producer_id != NO_PRODUCER_ID:
            return EndTxnResponse(producer_id=value.next_producer_id, producer_epoch=0)
        return EndTxnResponse(producer_id=value.producer_id, producer_epoch=value.producer_epoch)

    # --- the coordinator's own ---

    def fence(self, transactional_id: str) -> ErrorCode:
        """Abort an open transaction under a new epoch, so that its producer can do nothing more with it."""
        before = self._table.get(transactional_id)
        assert before is not None and before.transaction_status == ONGOING
        raised = replace(before, producer_epoch=before.producer_epoch + 1)
        return self._prepare(transactional_id, raised, committed=False, version=0, last=NO_PRODUCER_EPOCH)

    # --- both ---

    def _prepare(
        self,
        transactional_id: str,
        before: TransactionValue,
        *,
        committed: bool,
        version: int,
        last: int | None = None,
    ) -> ErrorCode:
        """COORDINATOR_LOAD_IN_PROGRESS: a producer id is needed, and none is at hand."""
        epoch, next_producer_id = before.producer_epoch, NO_PRODUCER_ID
        if version >= EPOCH_PER_TRANSACTION:
            last, epoch = epoch, epoch + 1
            if last == LAST_EPOCH:
                wanted = self._new_producer_id()
                if wanted is None:
                    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                next_producer_id = wanted
        is_open = before.transaction_status == ONGOING
        value = replace(
            before,
            producer_epoch=epoch,
            transaction_status=PREPARE_COMMIT if committed else PREPARE_ABORT,
            transaction_partitions=before.transaction_partitions or (),
            transaction_last_update_timestamp_ms=self._turn.wall_ms,
            transaction_start_timestamp_ms=before.transaction_start_timestamp_ms if is_open else self._turn.wall_ms,
            previous_producer_id=before.producer_id,
            next_producer_id=next_producer_id,
            client_transaction_version=version,
        )
        self._states.put(transactional_id, value, last_epoch=last)
        self._completion.begin_once_committed(transactional_id)
        return ErrorCode.NONE


# --- what a request means; None: the transaction is to be ended ---


def _end(before: TransactionValue, request: EndTxnRequest) -> ErrorCode | None:
    """TV1: the producer keeps its epoch."""
    status = before.transaction_status
    if request.producer_id != before.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if request.producer_epoch != before.producer_epoch or request.producer_epoch > LAST_EPOCH:
        return ErrorCode.PRODUCER_FENCED
    if status == ONGOING:
        return None
    prepare = PREPARE_COMMIT if request.committed else PREPARE_ABORT
    if status == COMPLETES[prepare]:
        return ErrorCode.NONE
    return ErrorCode.CONCURRENT_TRANSACTIONS if status == prepare else ErrorCode.INVALID_TXN_STATE


def _end_by_epoch(before: TransactionValue, request: EndTxnRequest) -> ErrorCode | None:
    """TV2: the epoch tells a repeated request from one that ends the next transaction."""
    if is_next_producer(before, request.producer_id, request.producer_epoch):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    status = before.transaction_status
    is_other_id = request.producer_id != before.producer_id
    knows_epochs = before.client_transaction_version >= EPOCH_PER_TRANSACTION  # else another producer has come since
    ran_out = (
        knows_epochs
        and is_other_id
        and request.producer_id == before.previous_producer_id
        and (request.producer_epoch, before.producer_epoch) == (LAST_EPOCH, 0)
    )
    if is_other_id and not ran_out:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_current = not is_other_id and request.producer_epoch == before.producer_epoch <= LAST_EPOCH
    is_bumped = not is_other_id and request.producer_epoch + 1 == before.producer_epoch
    is_repeated = ran_out or (knows_epochs and is_bumped)
    if status in PREPARED or (status in (COMPLETE_COMMIT, COMPLETE_ABORT) and is_repeated):
        return _repeated(status, request) if is_repeated else ErrorCode.PRODUCER_FENCED
    if not is_current:
        return ErrorCode.PRODUCER_FENCED
    if status == ONGOING:
        return None
    assert status in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)
    return ErrorCode.INVALID_TXN_STATE if request.committed else None  # an empty one can be aborted, for its epoch


def _repeated(status: int, request: EndTxnRequest) -> ErrorCode:
    prepare = PREPARE_COMMIT if request.committed else PREPARE_ABORT
    if status == COMPLETES[prepare]:
        return ErrorCode.NONE
    return ErrorCode.CONCURRENT_TRANSACTIONS if status == prepare else ErrorCode.INVALID_TXN_STATE
