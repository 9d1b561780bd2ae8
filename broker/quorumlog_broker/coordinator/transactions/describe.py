"""DescribeTransactions and ListTransactions (KIP-664): what tools see of transactional ids."""

from __future__ import annotations

from collections.abc import Callable, Collection

from quorumlog.errors import ErrorCode
from quorumlog.messages.transactions import DescribedTransaction, ListedTransaction, ListTransactionsRequest
from quorumlog.records.coordinator.transactions import TransactionStatus, TransactionValue
from quorumlog.slices import Pace, Sliced
from quorumlog_broker.coordinator.transactions.state.states import States, TransactionTurn
from quorumlog_broker.coordinator.transactions.state.table import NAMES, TransactionTable, by_topic
from quorumlog_broker.coordinator.turn import Call

ALL_DURATIONS = -1


def unknown_states(names: Collection[str]) -> tuple[str, ...]:
    """Those of a ListTransactions that are no states, each once; they match nothing."""
    return tuple(name for name in dict.fromkeys(names) if name not in NAMES.values())


class Describe:
    def __init__(self, turn: TransactionTurn, table: TransactionTable, states: States) -> None:
        self._turn, self._table, self._states = turn, table, states

    def describe(self, call: Call, transactional_id: str) -> None:
        error = self._states.read_refusal(transactional_id)
        if error != ErrorCode.NONE:
            refused = DescribedTransaction(transactional_id=transactional_id, error_code=error)
            self._turn.answer(call.number, refused)
            return
        self._states.answer_read(transactional_id, call.number, self._described(transactional_id))

    def _described(self, transactional_id: str) -> DescribedTransaction:
        value = self._table.get(transactional_id)
        if value is None:
            unknown = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            return DescribedTransaction(transactional_id=transactional_id, error_code=unknown)
        return DescribedTransaction(
            transactional_id=transactional_id,
            state=NAMES[TransactionStatus(value.transaction_status)],
            transaction_timeout_ms=value.transaction_timeout_ms,
            transaction_start_time_ms=value.transaction_start_timestamp_ms,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            topics=by_topic(self._table.partitions(transactional_id)),
            joint_group=_joint_group(value),
        )

    def list(
        self, request: ListTransactionsRequest, matches: Callable[[str], bool] | None
    ) -> Sliced[tuple[ListedTransaction, ...]]:
        """In slices: ids may come and go meanwhile. Also ids whose records are not committed yet.

        matches: the pattern of the request, for a whole id.

        As in Kafka, an id without a transaction has lasted longer than any duration.
        """
        now_ms, found, pace = self._turn.wall_ms, [], Pace()
        producers = frozenset(request.producer_id_filters)
        for transactional_id in self._table.ids():
            if pace.is_over():
                yield
            value = self._table.get(transactional_id)
            if value is None:
                continue
            name = NAMES[TransactionStatus(value.transaction_status)]
            lasted_ms = now_ms - value.transaction_start_timestamp_ms
            if (
                (not producers or value.producer_id in producers)
                and (not request.state_filters or name in request.state_filters)
                and (request.duration_filter_ms <= ALL_DURATIONS or lasted_ms > request.duration_filter_ms)
                and (matches is None or matches(transactional_id))
            ):
                found.append(
                    ListedTransaction(
                        transactional_id=transactional_id,
                        producer_id=value.producer_id,
                        state=name,
                        transaction_version=value.client_transaction_version,
                        joint_group=_joint_group(value),
                        producer_epoch=value.producer_epoch,
                        timeout_ms=value.transaction_timeout_ms,
                        start_time_ms=value.transaction_start_timestamp_ms,
                    )
                )
        return tuple(found)


def _joint_group(value: TransactionValue) -> str:
    """Whose child the id is; empty for others."""
    return "" if value.joint is None else value.joint.group
