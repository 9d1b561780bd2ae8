"""Equal parts of many members' records as one object: members of a group are alike, and there are thousands of them.

A record that is read brings objects of its own: the host, the client, the topics, the epochs, each member's id three
times. That is half of what a member takes.
"""

from __future__ import annotations

from typing import TypeVar

from quorumlog.records.coordinator.consumer_groups import (
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

MAX_KNOWN = 1_024  # of one core. Above it all are forgotten: what is in use stays, and what comes is kept again
MAX_ITEMS = 16  # of a tuple that is worth the time to compare it

Value = TypeVar("Value")


class Alike:
    """Of one core. Values do not change, so nobody sees that two of them are one."""

    def __init__(self) -> None:
        self._known: dict[object, object] = {}

    def of(self, value: Value) -> Value:
        """The one that was seen before, if it is equal and of the same type."""
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        found: Value = self._known.setdefault((type(value), value), value)  # type: ignore[assignment]
        return found

    def member(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMemberMetadataValue:
        of = self.of
        names = value.subscribed_topic_names
        if len(names) <= MAX_ITEMS:
            names = of(tuple(of(name) for name in names))
        return of(
            ConsumerGroupMemberMetadataValue(
                value.instance_id,
                of(value.rack_id),
                of(value.client_id),
                of(value.client_host),
                names,
                of(value.subscribed_topic_regex),
                of(value.rebalance_timeout_ms),
                of(value.server_assignor),
                value.classic_member_metadata,
            )
        )

    def current(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            self.of(value.member_epoch),
            self.of(value.previous_member_epoch),
            value.state,
            self._assigned(value.assigned_partitions),
            self._assigned(value.partitions_pending_revocation),
        )

    def _assigned(self, topics: tuple[AssignedPartitions, ...]) -> tuple[AssignedPartitions, ...]:
        return tuple(
            AssignedPartitions(self.of(one.topic_id), one.partitions, self._epochs(one.assignment_epochs))
            for one in topics
        )

    def _epochs(self, epochs: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return epochs if epochs is None or len(epochs) > MAX_ITEMS else self.of(epochs)
