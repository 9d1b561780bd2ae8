"""DescribeTransactions, ListTransactions and DescribeProducers (KIP-664): for tools that look for transactions.

Of the coordinators and of the replicas on this broker.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.transactions import (
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProducersOfTopic,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.api.transaction_calls import begin
from quorumlog_broker.coordinator.runtime.listed_transactions import list_transactions
from quorumlog_broker.coordinator.runtime.many_calls import ask_each
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.replicas.upcoming import MAX_QUERY_WAIT_MS

MAX_PATTERN_MEMORY_BYTES = 8 << 20  # that RE2 may take for a pattern

# --- coordinators ---


async def handle_describe_transactions(
    services: Services, context: Context, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    check_topic_count(request.transactional_ids, services.limits)

    def begin_one(transactional_id: str) -> PendingAnswer:
        return begin(services, context, transactional_id, TransactionShard.describe, transactional_id)

    described = await ask_each(request.transactional_ids, begin_one, _not_described)
    return DescribeTransactionsResponse(transactions=tuple(described))


def _not_described(transactional_id: str, error: ApiError) -> DescribedTransaction:
    return DescribedTransaction(transactional_id=transactional_id, error_code=error.code)


async def handle_list_transactions(
    services: Services, _context: Context, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    matches = _matcher(request.transactional_id_pattern)
    return await list_transactions(services.transactions.coordinators, request, matches)


def _matcher(pattern: str | None) -> Callable[[str], bool] | None:
    """RE2 as in Kafka: its time grows with the text only. Raises ApiError(INVALID_REGULAR_EXPRESSION)."""
    if not pattern:
        return None
    import re2  # a node loads it when it is first needed

    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, MAX_PATTERN_MEMORY_BYTES
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else "not valid"
        reason = said.decode(errors="replace") if isinstance(said, bytes) else said
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{pattern!r} is no RE2 expression: {reason}") from error
    return lambda text: compiled.fullmatch(text) is not None


# --- replicas ---


async def handle_describe_producers(
    services: Services, _context: Context, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    check_topic_count(request.topics, services.limits)
    topics = []
    deadline_ms = services.clock.now_ms() + MAX_QUERY_WAIT_MS
    for topic in request.topics:
        partitions = [
            await services.producer_report.describe(topic.name, index, deadline_ms) for index in topic.partitions
        ]
        topics.append(ProducersOfTopic(name=topic.name, partitions=tuple(partitions)))
    return DescribeProducersResponse(topics=tuple(topics))
