"""The turn of the core of a partition of `__consumer_offsets`."""

from __future__ import annotations

from quorumlog_broker.coordinator.group_deadlines import GroupTimer
from quorumlog_broker.coordinator.turn import MAX_RECORD_BYTES, Answer, Call, Producer, Write
from quorumlog_broker.coordinator.turn import Turn as CoordinatorTurn

__all__ = ["GROUP_UNITS", "MAX_RECORD_BYTES", "Answer", "Call", "Producer", "Turn", "Write"]

Turn = CoordinatorTurn[GroupTimer]

GROUP_UNITS = 8  # of a slice: what a group takes beside its offsets
