"""Batches whose driver has aborted them: what a task of theirs begins after that would be open until its time-out.

Spark calls a writer's abort while tasks of the job may still run, and kills their processes. A run that has given up a
batch never decides it: a stream ends with it, a batch job is over.

Each has a record, so that the next coordinator refuses such a task, too. AbortJoint is answered once it is committed,
and the group is pending until then: what begins before it lies before it in the log and is aborted, and what comes
after it finds it.
"""

from __future__ import annotations

from collections import deque

from quorumlog.records.coordinator.joint import GivenUpKey, GivenUpValue
from quorumlog.settings.transactions import JointConfig
from quorumlog_broker.coordinator.transactions.state.states import TransactionTurn
from quorumlog_broker.coordinator.transactions.state.table import TransactionTable

MAX_GIVEN_UP = 10_000  # of a coordinator; the oldest one is forgotten


class GivenUp:
    """They are kept as long as a batch without a name: no task lives for a day behind its driver's abort."""

    def __init__(self, turn: TransactionTurn, config: JointConfig, table: TransactionTable) -> None:
        self._turn, self._config, self._table = turn, config, table

    def __contains__(self, one: GivenUpKey) -> bool:
        return one in self._table.given_up

    def add(self, one: GivenUpKey) -> None:
        """Writes a record, unless it is known. What it makes too many leaves the log in the same turn."""
        if one in self._table.given_up:
            return
        while len(self._table.given_up) >= MAX_GIVEN_UP:
            self._turn.delete(next(iter(self._table.given_up)))
        self._turn.write(one, GivenUpValue(self._turn.wall_ms))

    def expired(self) -> deque[GivenUpKey]:
        """The oldest ones. A clock that went back keeps some longer."""
        until_ms = self._turn.wall_ms - self._config.single_expiration_ms
        found: deque[GivenUpKey] = deque()
        for one, at_ms in self._table.given_up.items():
            if at_ms > until_ms:
                break
            found.append(one)
        return found

    def forget(self, one: GivenUpKey) -> None:
        if one in self._table.given_up:
            self._turn.delete(one)
