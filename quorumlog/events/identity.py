"""Which events of several nodes are one. Pure."""

from __future__ import annotations

from quorumlog.messages.events import Event

LEADER = "quorum.leader"


def is_election(event: Event) -> bool:
    """That a node knows no leader for a while is none."""
    return event.kind == LEADER and event.text.startswith("leader ")


def shared_identity(event: Event) -> tuple[object, ...] | None:
    """Of a metadata record, and of an epoch of the quorum, there is one event, whoever tells it. None: it is its node's
    alone."""
    if event.offset >= 0:
        return event.kind, event.subject, event.offset
    return (event.kind, event.text) if is_election(event) else None


def identity(event: Event) -> tuple[object, ...]:
    return shared_identity(event) or (event.node_id, event.number, event.at_ms)
