"""Forgets joint groups that have decided nothing for `joint.expiration.ms`, and batches that were given up.

As the expiry of ids, in parts of one turn each, until nothing that has expired is left: a partition may have as many
groups as `joint.max.groups`, and nobody may begin another one before they are gone.
"""

from __future__ import annotations

from collections import deque

from quorumlog.records.coordinator.joint import GivenUpKey, JointKey, JointKind
from quorumlog.settings.transactions import JointConfig
from quorumlog_broker.coordinator.transactions.joint.given_up import GivenUp
from quorumlog_broker.coordinator.transactions.joint.preparing import Preparing
from quorumlog_broker.coordinator.transactions.state.joint_group import JointGroup
from quorumlog_broker.coordinator.transactions.state.states import JointSweepGoesOn, TransactionTurn
from quorumlog_broker.coordinator.transactions.state.table import TransactionTable

LOOKS_A_TURN = 5_000  # groups that one turn looks at
TOMBSTONES_A_TURN = 500  # 0.6 MB at most: a name has up to 1,000 bytes, and a run 200


class JointExpiry:
    def __init__(
        self,
        turn: TransactionTurn,
        config: JointConfig,
        table: TransactionTable,
        preparing: Preparing,
        given_up: GivenUp,
    ) -> None:
        self._turn, self._config, self._table = turn, config, table
        self._preparing, self._given_up = preparing, given_up
        self._left: deque[str] = deque()
        self._left_given_up: deque[GivenUpKey] = deque()

    def begin(self) -> None:
        """Due with the expiry of ids. Groups that a sweep before this one has not come to are looked at now."""
        if not self._turn.is_loaded_for_good:
            return
        self._left = deque(self._table.joint_groups)
        self._left_given_up = self._given_up.expired()
        self.go_on()

    def go_on(self) -> None:
        """A part that is short enough for one turn; the next one follows at once."""
        tombstones = looks = 0
        while self._left and looks < LOOKS_A_TURN and tombstones < TOMBSTONES_A_TURN:
            name = self._left.popleft()
            looks += 1
            if self._is_expired(name):
                self._turn.delete(JointKey(name))
                tombstones += 1
        while self._left_given_up and tombstones < TOMBSTONES_A_TURN:
            self._given_up.forget(self._left_given_up.popleft())
            tombstones += 1
        if self._left or self._left_given_up:
            self._turn.timers.arm(JointSweepGoesOn(), self._turn.now_ms + 1)

    def _is_expired(self, name: str) -> bool:
        group = self._table.joint_groups.get(name, JointGroup())
        decision = group.decision
        if decision is None or self._turn.is_pending(name) or not self._preparing.is_at_rest(group):
            return False
        is_single = decision.kind == JointKind.SINGLE
        kept_ms = self._config.single_expiration_ms if is_single else self._config.expiration_ms
        return decision.decided_at_ms + kept_ms <= self._turn.wall_ms
