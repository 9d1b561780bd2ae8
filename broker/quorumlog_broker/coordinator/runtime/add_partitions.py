"""AddPartitionsToTxn: of one producer, or of many, for which the leaders of partitions ask together."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ExtendedTransaction,
    TransactionToExtend,
)
from quorumlog_broker.coordinator.runtime.coordinator import Caller
from quorumlog_broker.coordinator.runtime.many_calls import ask_each
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from quorumlog_broker.coordinator.runtime.transaction_coordinators import TransactionCoordinators
from quorumlog_broker.coordinator.transactions.partitions import extended
from quorumlog_broker.coordinator.transactions.shard import TransactionShard

MAX_TRANSACTIONS = 10_000  # of one request


async def add_partitions_to_transactions(
    coordinators: TransactionCoordinators, caller: Caller, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """Each has an answer of its own, in the order of the request.

    Raises ApiError(INVALID_REQUEST) for too many.
    """
    if len(request.transactions) > MAX_TRANSACTIONS:
        text = f"{len(request.transactions)} transactions in a request; {MAX_TRANSACTIONS} are allowed"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)

    def begin(asked: TransactionToExtend) -> PendingAnswer:
        return coordinators.of(asked.transactional_id).call(TransactionShard.add_partitions, caller, asked)

    results = await ask_each(request.transactions, begin, _refused)
    return AddPartitionsToTxnResponse(results=tuple(results))


def _refused(asked: TransactionToExtend, error: ApiError) -> ExtendedTransaction:
    code = error.code
    return extended(asked, lambda _: code)
