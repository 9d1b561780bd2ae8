"""Forgets transactional ids that nobody has used for `transactional.id.expiration.ms`.

An id of a joint group that no next batch will use goes sooner (decision 112): a batch without a name has a group of its
own, so its ids would else grow with the batches of a week.
"""

from __future__ import annotations

from collections import deque

from quorumlog.records.coordinator.transactions import TransactionKey, TransactionValue
from quorumlog.settings.transactions import TransactionConfig
from quorumlog_broker.coordinator.transactions.state.states import SweepGoesOn, TransactionTurn
from quorumlog_broker.coordinator.transactions.state.table import IDLE, TransactionTable

LOOKS_PER_TURN = 10_000  # ids that one turn looks at
TOMBSTONES_PER_TURN = 500  # 0.5 MB at most, as long as ids have no more than 1,000 bytes


class Expiry:
    def __init__(self, turn: TransactionTurn, config: TransactionConfig, table: TransactionTable) -> None:
        self._turn, self._config, self._table = turn, config, table
        self._left: deque[str] = deque()

    def begin(self) -> None:
        """Due each `remove_interval_ms`. Ids that a sweep before this one has not come to are looked at now."""
        if not self._turn.is_loaded_for_good:
            return
        self._left = deque(transactional_id for transactional_id, _ in self._table.items())
        self.go_on()

    def go_on(self) -> None:
        """A part that is short enough for one turn; the next one follows at once."""
        tombstones = looks = 0
        while self._left and looks < LOOKS_PER_TURN and tombstones < TOMBSTONES_PER_TURN:
            transactional_id = self._left.popleft()
            looks += 1
            if self._is_expired(transactional_id):
                self._turn.delete(TransactionKey(transactional_id))
                tombstones += 1
        if self._left:
            self._turn.timers.arm(SweepGoesOn(), self._turn.now_ms + 1)

    def _is_expired(self, transactional_id: str) -> bool:
        value = self._table.get(transactional_id)
        if value is None or value.transaction_status not in IDLE or self._turn.is_pending(transactional_id):
            return False
        return value.transaction_last_update_timestamp_ms + self._kept_ms(value) <= self._turn.wall_ms

    def _kept_ms(self, value: TransactionValue) -> int:
        if value.joint is None or self._table.has_next_batch(value.joint.group):
            return self._config.expiration_ms
        return min(self._config.expiration_ms, self._config.joint.single_expiration_ms)
