"""Topics that brokers keep for themselves, by Kafka's names."""

from __future__ import annotations

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"

INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})


def is_internal(topic: str) -> bool:
    """Clients see it marked so, and may neither produce to it nor delete its records."""
    return topic in INTERNAL_TOPICS
