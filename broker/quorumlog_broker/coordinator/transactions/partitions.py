"""AddPartitionsToTxn and AddOffsetsToTxn: which partitions a transaction writes to, so that each gets its marker.

A leader may also ask only, before it takes a producer's first batch (KIP-890, part 1): `verify_only`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    ExtendedTransaction,
    TransactionPartitionResult,
    TransactionToExtend,
    TransactionTopicResult,
)
from quorumlog.records.coordinator.transactions import TRANSACTION, TransactionKey
from quorumlog_broker.coordinator.transactions.state.states import (
    States,
    TransactionTurn,
    is_next_producer,
    rules_of,
    told,
)
from quorumlog_broker.coordinator.transactions.state.table import (
    LAST_EPOCH,
    ONGOING,
    PREPARED,
    Partition,
    TransactionTable,
    to_record,
)
from quorumlog_broker.coordinator.turn import Call

OFFSETS_TOPIC = "__consumer_offsets"


class Partitions:
    """partition_exists: in the broker's metadata."""

    def __init__(
        self,
        turn: TransactionTurn,
        table: TransactionTable,
        states: States,
        partition_exists: Callable[[str, int], bool],
    ) -> None:
        self._turn, self._table, self._states = turn, table, states
        self._exists = partition_exists

    # --- calls ---

    def add(self, call: Call, request: TransactionToExtend) -> None:
        partitions = [(topic.name, index) for topic in request.topics for index in topic.partitions]
        if request.verify_only:
            self._verify(call, request)
            return
        unknown = {one for one in partitions if not self._exists(*one)}
        if unknown:
            missing, others = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
            self._turn.answer(call.number, extended(request, lambda one: missing if one in unknown else others))
            return
        version = rules_of(request.transaction_version)
        found = self._extend(
            request.transactional_id, request.producer_id, request.producer_epoch, frozenset(partitions), version
        )
        error = told(found or ErrorCode.NONE, takes_producer_fenced=request.takes_producer_fenced)
        self._answer(call, found, extended(request, lambda _: error))

    def add_offsets(self, call: Call, request: AddOffsetsToTxnRequest, index: int) -> None:
        """index: of the partition of `__consumer_offsets` that has the group."""
        if not request.group_id:
            self._turn.answer(call.number, AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return
        partitions = frozenset({(OFFSETS_TOPIC, index)})
        found = self._extend(request.transactional_id, request.producer_id, request.producer_epoch, partitions, 0)
        error = told(found or ErrorCode.NONE, takes_producer_fenced=request.takes_producer_fenced)
        self._answer(call, found, AddOffsetsToTxnResponse(error_code=error))

    def _answer(self, call: Call, found: ErrorCode | None, response: object) -> None:
        if found is None:
            self._turn.answer_after_commit(call.number, response)
        else:
            self._turn.answer(call.number, response)

    # --- decisions ---

    def _extend(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: frozenset[Partition], version: int
    ) -> ErrorCode | None:
        """None: a record was written. NONE: nothing has to be. Also without partitions a transaction begins: Kafka's
        producer that names none may end it."""
        error = self._states.refusal(transactional_id)
        if error != ErrorCode.NONE:
            return error
        before = self._table.get(transactional_id)
        if before is not None and is_next_producer(before, producer_id, epoch):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if before is None or before.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if before.producer_epoch != epoch or epoch > LAST_EPOCH:
            return ErrorCode.PRODUCER_FENCED
        known = self._table.partitions(transactional_id)
        is_open = before.transaction_status == ONGOING
        if before.joint is not None and not is_open:
            return ErrorCode.PRODUCER_FENCED  # only BeginJoint opens it
        if is_open and partitions <= known:
            return ErrorCode.NONE
        value = replace(
            before,
            transaction_status=ONGOING,
            transaction_partitions=to_record(known | partitions),
            transaction_last_update_timestamp_ms=self._turn.wall_ms,
            transaction_start_timestamp_ms=before.transaction_start_timestamp_ms if is_open else self._turn.wall_ms,
            previous_producer_id=before.producer_id,
            client_transaction_version=version,
        )
        if not self._turn.fits(TransactionKey(transactional_id), value, TRANSACTION.newest):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        self._states.put(transactional_id, value)
        return None

    def _verify(self, call: Call, request: TransactionToExtend) -> None:
        """As the records say it, also those that are not committed: the answer waits for them."""
        error = self._states.read_refusal(request.transactional_id)
        if error != ErrorCode.NONE:
            self._turn.answer(call.number, extended(request, lambda _: error))
            return
        response = extended(request, self._membership(request))
        self._states.answer_read(request.transactional_id, call.number, response)

    def _membership(self, request: TransactionToExtend) -> Callable[[Partition], ErrorCode]:
        value = self._table.get(request.transactional_id)
        if value is None or value.producer_id != request.producer_id:
            return lambda _: ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if value.producer_epoch != request.producer_epoch:
            return lambda _: ErrorCode.INVALID_PRODUCER_EPOCH
        if value.transaction_status in PREPARED:
            return lambda _: ErrorCode.CONCURRENT_TRANSACTIONS
        known = self._table.partitions(request.transactional_id)
        return lambda one: ErrorCode.NONE if one in known else ErrorCode.TRANSACTION_ABORTABLE


def extended(request: TransactionToExtend, error_of: Callable[[Partition], ErrorCode]) -> ExtendedTransaction:
    """The answer, with an error of each partition."""
    return ExtendedTransaction(
        transactional_id=request.transactional_id,
        topics=tuple(
            TransactionTopicResult(
                name=topic.name,
                partitions=tuple(
                    TransactionPartitionResult(index=index, error_code=error_of((topic.name, index)))
                    for index in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
