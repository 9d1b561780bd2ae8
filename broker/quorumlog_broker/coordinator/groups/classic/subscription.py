"""What the coordinator reads of a member's metadata: the topics of `ConsumerProtocolSubscription`.

The bytes belong to the clients. Only the prefix that all versions share is read, for expiry and for OffsetDelete.
"""

from __future__ import annotations

from quorumlog.records import CorruptRecords
from quorumlog_broker.coordinator.groups.classic.consumer_protocol import read_topics
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State

CONSUMER = "consumer"
"""The protocol type whose metadata has this form."""


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """The topics that members consume now. None: they cannot be told, so any topic may be one of them."""
    if group.state is State.EMPTY:
        return frozenset()
    if group.protocol_type != CONSUMER or group.protocol is None or group.state is not State.STABLE:
        return None
    found: set[str] = set()
    for member in group.members.values():
        try:
            found.update(read_topics(member.metadata(group.protocol)))
        except CorruptRecords:
            return None
    return frozenset(found)
