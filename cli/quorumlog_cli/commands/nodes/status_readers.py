"""What `quorumlog status` tells of joint groups that hold readers back: those of committed records wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from quorumlog_cli.commands.transactions.transaction_view import partitions_of

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.ids import TopicPartition
    from quorumlog.messages.joint import ListedJointGroup, OpenJointChild

HOLDS_READERS_MS = 300_000  # a transaction that is open for longer is told; a batch is done sooner, as a rule
MAX_ASKED = 1_000  # open transactions whose partitions are asked for, the oldest first
LISTED_MS = HOLDS_READERS_MS // 2  # by the clocks of brokers, which may differ from this one's
HOLDING = ("Ongoing", "PrepareCommit", "PrepareAbort")  # states in which partitions wait for a transaction
MAX_TOLD = 5  # partitions of a line, those that wait for longest first


class OldChild(NamedTuple):
    """open_ms: how long it has been open."""

    group: str
    child: OpenJointChild
    open_ms: int


class HeldBack(NamedTuple):
    """How long one partition's last stable offset has waited for a group, at most."""

    partition: TopicPartition
    offset: int | None
    open_ms: int


def readers_held_back(client: Cluster, now_ms: int) -> list[dict[str, Any]]:
    """By group, the one that has waited for longest first. now_ms: since 1970. Raises what the client raises.

    Groups are asked for only where a transaction has been open for long: each of a group's children is one, and only
    gRPC lists groups, which takes longer to load than all else that `status` does.
    """
    if not client.admin.list_transactions(states=HOLDING, duration_ms=LISTED_MS):
        return []
    from quorumlog.client.offsets import LATEST

    old = old_children(client.admin.list_joint_groups(), now_ms)[:MAX_ASKED]
    if not old:
        return []
    described = client.admin.describe_transactions([one.child.transactional_id for one in old])
    partitions = {name: partitions_of(one) for name, one in described.items() if one.state == "Ongoing"}
    wanted = {partition: LATEST for found in partitions.values() for partition in found}
    offsets = client.admin.list_offsets(wanted, isolation_level="read_committed") if wanted else {}
    return documents(old, partitions, {at: found.offset for at, found in offsets.items()})


def old_children(groups: Iterable[ListedJointGroup], now_ms: int) -> list[OldChild]:
    """Open for longer than `HOLDS_READERS_MS`, the oldest first."""
    found = [
        OldChild(group.group_id, child, now_ms - child.started_at_ms)
        for group in groups
        for child in group.open
        if now_ms - child.started_at_ms > HOLDS_READERS_MS
    ]
    return sorted(found, key=lambda one: -one.open_ms)


def documents(
    old: Iterable[OldChild],
    partitions: Mapping[str, Iterable[TopicPartition]],
    stable: Mapping[TopicPartition, int],
) -> list[dict[str, Any]]:
    """old: the oldest first. partitions: of those that are still open, by transactional id. A group whose transactions
    have written nothing yet holds nobody back."""
    found: dict[str, dict[str, Any]] = {}
    for one in old:
        for at in partitions.get(one.child.transactional_id, ()):
            group = found.setdefault(
                one.group,
                {"group": one.group, "batch": one.child.sequence, "open_ms": one.open_ms, "ids": set(), "at": {}},
            )
            group["ids"].add(one.child.transactional_id)
            group["at"].setdefault(at, HeldBack(at, stable.get(at), one.open_ms))
    return [
        {
            "group": group["group"],
            "batch": group["batch"],
            "open": len(group["ids"]),
            "open_ms": group["open_ms"],
            "partitions": [
                {"topic": one.partition[0], "partition": one.partition[1], "stable": one.offset, "open_ms": one.open_ms}
                for one in group["at"].values()
            ],
        }
        for group in found.values()
    ]


def line_of(document: Mapping[str, Any]) -> str:
    """For people."""
    waits = [
        f"{one['topic']}-{one['partition']} at {one['stable']} for {one['open_ms']} ms"
        for one in document["partitions"]
    ]
    more = f" and {len(waits) - MAX_TOLD} more" if len(waits) > MAX_TOLD else ""
    return (
        f"readers of committed records wait for {document['group']}, batch {document['batch']}, with "
        f"{document['open']} open transactions: last stable offset of {', '.join(waits[:MAX_TOLD])}{more}. Its query "
        f"decides them or their time-out ends them; quorumlog spark sink abort {document['group']} does at once"
    )
