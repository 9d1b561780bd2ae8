"""Decided transactions of one coordinator, as those who send markers ask for them."""

from __future__ import annotations

from collections import deque

from quorumlog_broker.coordinator.transactions.markers import MarkerResult
from quorumlog_broker.coordinator.transactions.state.completion import DecidedTransaction


class Decisions:
    """open: those that are not complete, by id, with the partitions that are missing."""

    def __init__(self) -> None:
        self.open: dict[str, DecidedTransaction] = {}
        self.untaken: deque[str] = deque()

    def add(self, decided: DecidedTransaction) -> None:
        assert decided.transactional_id not in self.open, "a decision before the last one is complete"
        self.open[decided.transactional_id] = decided
        self.untaken.append(decided.transactional_id)

    @property
    def has_decided(self) -> bool:
        return bool(self.untaken)

    def take_decided(self, limit: int) -> list[DecidedTransaction]:
        return [self.open[self.untaken.popleft()] for _ in range(min(limit, len(self.untaken)))]

    def unconfirmed(self, transactional_id: str) -> DecidedTransaction | None:
        return self.open.get(transactional_id)

    def ended(self, result: MarkerResult) -> None:
        """Written or refused: told to the coordinator."""
        transactional_id, partition = result.marker.transactional_id, result.marker.partition
        before = self.open.get(transactional_id)
        if before is None:
            return
        left = tuple(one for one in before.partitions if one != partition) if result.is_written else ()
        if left:
            self.open[transactional_id] = before._replace(partitions=left)
        else:
            del self.open[transactional_id]
