"""ListTransactions of one broker: of every coordinator that it has, and which partitions these are."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.messages.transactions import ListedTransaction, ListTransactionsRequest, ListTransactionsResponse
from quorumlog_broker.coordinator.runtime.many_calls import all_or_none
from quorumlog_broker.coordinator.runtime.transaction_coordinator import TransactionCoordinator
from quorumlog_broker.coordinator.runtime.transaction_coordinators import TransactionCoordinators
from quorumlog_broker.coordinator.transactions.describe import unknown_states


async def list_transactions(
    coordinators: TransactionCoordinators,
    request: ListTransactionsRequest,
    matches: Callable[[str], bool] | None = None,
) -> ListTransactionsResponse:
    """matches: the pattern of the request, for a whole id. The answer names no partition that has left meanwhile.

    Raises ApiError(COORDINATOR_LOAD_IN_PROGRESS) if one of them loads.
    """
    coordinators.check_all_taken_up()
    looked_at: list[int] = []

    async def of_one(one: tuple[int, TransactionCoordinator]) -> tuple[ListedTransaction, ...]:
        index, coordinator = one
        found = await coordinator.list(request, matches)
        looked_at.append(index)
        return found

    found = await all_or_none(coordinators.all_by_index, of_one)
    return ListTransactionsResponse(
        unknown_state_filters=unknown_states(request.state_filters),
        transactions=tuple(found),
        partitions=tuple(sorted(looked_at)),
    )
