"""Prepare records of children: each transaction of a joint group ends by one, as every transaction does.

A decision prepares its children where it stands in the log; their records follow, a few a turn, and those that a
coordinator finds missing when it loads are written again. A child that ends without a decision is prepared by its own
record.
"""

from __future__ import annotations

from collections import deque

from quorumlog.records.coordinator.joint import Cause
from quorumlog_broker.coordinator.transactions.state.completion import Completion
from quorumlog_broker.coordinator.transactions.state.joint_group import JointGroup, prepared
from quorumlog_broker.coordinator.transactions.state.states import PreparesGoOn, States, TransactionTurn
from quorumlog_broker.coordinator.transactions.state.table import TransactionTable

PREPARES_A_TURN = 64


class Preparing:
    def __init__(self, turn: TransactionTurn, table: TransactionTable, states: States, completion: Completion) -> None:
        self._turn, self._table, self._states, self._completion = turn, table, states, completion
        self._left: deque[tuple[JointGroup, deque[int]]] = deque()  # slots without a record, in order; never empty
        self._new: list[JointGroup] = []  # with a decision since the last turn: what they have left is not listed yet

    def decided(self, group: JointGroup) -> None:
        """Its decision was appended. Of a large one, also the first records have a turn of their own."""
        self._new.append(group)
        group.prepared_end = self._turn.next_offset
        if len(group.preparing) <= PREPARES_A_TURN:
            self.go_on()
        else:
            self._turn.timers.arm(PreparesGoOn(), self._turn.now_ms)

    def load(self) -> None:
        """The log has been replayed: what is missing is written once its end is committed."""
        if any(group.preparing for group in self._table.joint_groups.values()):
            self._turn.after_commit(self._go_on_loaded)

    def _go_on_loaded(self) -> None:
        for group in self._table.joint_groups.values():
            self._add(group)
        self._turn.timers.arm(PreparesGoOn(), self._turn.now_ms)

    def _add(self, group: JointGroup) -> None:
        if group.preparing:
            self._left.append((group, deque(group.preparing)))

    def list_new(self) -> None:
        """Which records the decisions since the last turn have left."""
        new, self._new = self._new, []
        for group in new:
            self._add(group)

    def go_on(self) -> None:
        """A part that is short enough for one turn; the next one follows at once."""
        self.list_new()
        for _ in range(PREPARES_A_TURN):
            if not self._left:
                return
            group, slots = self._left[0]
            slot = slots.popleft()
            if not slots:
                self._left.popleft()
            transactional_id = group.ids[slot]
            self._states.put_decided(transactional_id)
            group.prepared_end = self._turn.next_offset
            self._completion.begin_once_committed(transactional_id)
        if self._left:
            self._turn.timers.arm(PreparesGoOn(), self._turn.now_ms + 1)

    def is_prepared(self, group: JointGroup) -> bool:
        """The Prepare records of its last decision are committed, so that compaction may take the decision."""
        return not group.preparing and group.prepared_end <= self._turn.high_watermark

    def is_at_rest(self, group: JointGroup) -> bool:
        """Nothing of it is open, and its last decision may leave the log."""
        return group.is_at_rest and self.is_prepared(group)

    def abort(self, transactional_id: str, cause: Cause) -> None:
        """Of an open child that no decision names."""
        value = self._table.get(transactional_id)
        assert value is not None
        after = prepared(value, commits=False, at_ms=self._turn.wall_ms, cause=cause)
        self._states.put(transactional_id, after)
        self._completion.begin_once_committed(transactional_id)
