"""Rows that `quorumlog spark sink` shows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from quorumlog.ids import TopicPartition
    from quorumlog.messages.joint import ListedJointGroup, OpenJointChild

GROUP_COLUMNS = ("GROUP", "KIND", "BATCH", "DECIDED", "RUN", "OPEN", "OPEN-MS", "ENDING")
OPEN_COLUMNS = ("GROUP", "BATCH", "RUN", "TRANSACTIONAL-ID", "OPEN-MS", "TIMEOUT-MS", "PARTITIONS")
KINDS = {0: "stream", 1: "versioned", 2: "single"}  # JointKind


class GroupRow(NamedTuple):
    """batch, decided_at_ms (since 1970), kind, run: of the last decision; None: there is none. open_ms: of the oldest
    transaction that is open. ending: transactions whose markers are not all written."""

    group: str
    kind: str | None
    batch: int | None
    decided_at_ms: int | None
    run: str | None
    open: int
    open_ms: int | None
    ending: int


class OpenRow(NamedTuple):
    """partitions: whose last stable offset it holds back."""

    group: str
    batch: int
    run: str
    transactional_id: str
    open_ms: int
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]


def group_row(group: ListedJointGroup, now_ms: int) -> GroupRow:
    """now_ms: since 1970."""
    is_decided = group.sequence >= 0
    oldest = min((child.started_at_ms for child in group.open), default=None)
    return GroupRow(
        group.group_id,
        KINDS.get(group.kind, str(group.kind)) if is_decided else None,
        group.sequence if is_decided else None,
        group.decided_at_ms if is_decided else None,
        group.run if is_decided else None,
        len(group.open),
        None if oldest is None else _since(oldest, now_ms),
        group.ending,
    )


def open_row(group: str, child: OpenJointChild, partitions: Sequence[TopicPartition], now_ms: int) -> OpenRow:
    return OpenRow(
        group,
        child.sequence,
        child.run,
        child.transactional_id,
        _since(child.started_at_ms, now_ms),
        child.timeout_ms,
        tuple(partitions),
    )


def group_document(group: ListedJointGroup, row: GroupRow) -> dict[str, Any]:
    totals = {fact.name: fact.value for fact in group.facts}
    return {**row._asdict(), "location": group.location if group.sequence >= 0 else None, "totals": totals}


def _since(start_ms: int, now_ms: int) -> int:
    return max(0, now_ms - start_ms)  # clocks differ
