"""Offsets that are taken away, looked at as their tombstones are written: they expired, an OffsetDelete named them, or
their topic is gone.

- expiry (19): it takes nothing of a topic that a member subscribes to, and nothing that a transaction is to replace,
  unless what the transaction has is of a topic that was deleted, or does not say of which topic it is: such offsets go
  with a topic of that name, too (reborn_topic.py looks at what is left of them).
- deleted-in-use: an OffsetDelete takes nothing of a topic that a member subscribes to.
- deleted-offset-stays: when it has succeeded, nothing of its partition is left, neither what was committed nor what
  open transactions hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jepsen.checkers.findings import Findings
from quorumlog.errors import ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.records.coordinator import GROUP_TYPES, CoordinatorRecord, decode
from quorumlog.records.coordinator.offsets import GroupMetadataKey, OffsetKey
from quorumlog_broker.coordinator.group_turn import Write
from quorumlog_broker.coordinator.groups.classic.group import State
from quorumlog_broker.coordinator.groups.classic.subscription import subscribed_topics
from quorumlog_broker.coordinator.groups.offsets.table import Partition, PendingOffsets
from quorumlog_broker.coordinator.groups.shard import GroupShard

DELETED, UNSTAGED = "offsets deleted", "offsets deleted that transactions held"


class Expired(NamedTuple):
    group: str
    topic: str
    partition: int
    at_ns: int


class Forgotten(NamedTuple):
    """The record of a classic group was taken away."""

    group: str
    at_ns: int


class Expiries:
    """expired, forgotten: what was taken, and may be missing from then on; `expired` also by an OffsetDelete."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.expired: list[Expired] = []
        self.forgotten: list[Forgotten] = []
        self._deleting: tuple[str, str, int] | None = None  # what the OffsetDelete names that a core is at
        self._deleted = {DELETED: 0, UNSTAGED: 0}

    @property
    def counts(self) -> dict[str, int]:
        expired = len(self.expired) - self._deleted[DELETED]
        return {"offsets expired": expired, "classic groups forgotten": len(self.forgotten), **self._deleted}

    def listen(self, shard: GroupShard) -> None:
        """Call once for each core."""
        turn: Any = shard._turn
        append = turn._append

        def appended(names: Iterable[str], writes: Sequence[Write], said: CoordinatorRecord | None = None) -> None:
            for write in writes:
                if write.value is None and not write.is_control:
                    self._taken(shard, decode(GROUP_TYPES, write.key, None).key)
            append(names, writes, said)

        turn._append = appended
        self._listen_to_deletions(shard)

    def _listen_to_deletions(self, shard: GroupShard) -> None:
        calls: Any = shard._offset_calls
        delete = calls._delete_one

        def deleted(group_id: str, partition: Partition, subscribed: frozenset[str] | None) -> ErrorCode:
            self._deleting = (group_id, *partition)
            try:
                error: ErrorCode = delete(group_id, partition, subscribed)
            finally:
                self._deleting = None
            if error == ErrorCode.NONE and (left := _left(shard, group_id, partition)):
                text = f"{partition} of group {group_id} was deleted, and {left} is left"
                self._findings.broken("deleted-offset-stays", text)
            return error

        calls._delete_one = deleted

    def _taken(self, shard: GroupShard, key: Any) -> None:
        if isinstance(key, OffsetKey) and key.topic:  # without one it only confirms a leadership
            self._look(shard, key)
        elif isinstance(key, GroupMetadataKey):
            self.forgotten.append(Forgotten(key.group, self._findings.now_ns()))

    def _look(self, shard: GroupShard, key: OffsetKey) -> None:
        what = f"{key.topic}-{key.partition} of group {key.group}"
        gone = {*shard._offset_calls._gone, ZERO_UUID}
        values = _pending(shard).values(key.group, (key.topic, key.partition))
        is_deleted = (key.group, key.topic, key.partition) == self._deleting
        self._deleted[DELETED] += is_deleted
        self._deleted[UNSTAGED] += is_deleted and bool(values)
        if not is_deleted and any(value.topic_id not in gone for value in values):
            self._findings.broken("expiry", f"{what} is taken, and a transaction is to replace it")
        if (user := _user(shard, key)) is not None:
            self._findings.broken("deleted-in-use" if is_deleted else "expiry", f"{what} is taken, and {user}")
        self.expired.append(Expired(*key, self._findings.now_ns()))


def _left(shard: GroupShard, group_id: str, partition: Partition) -> str:
    """What a group has of it."""
    if shard._offsets.get(group_id, partition) is not None:
        return "a committed offset"
    return "what a transaction holds" if _pending(shard).values(group_id, partition) else ""


def _pending(shard: GroupShard) -> PendingOffsets:
    return shard._offsets.pending


def _user(shard: GroupShard, key: OffsetKey) -> str | None:
    """What the group needs it for."""
    consumers = shard._consumers.groups.get(key.group)
    if consumers is not None:
        users = [name for name, one in consumers.members.items() if key.topic in consumers.topics_of(one)]
        return f"{users} subscribe to it" if users else None
    group = shard._groups.get(key.group)
    if group is None or group.state is State.EMPTY:
        return None
    topics = subscribed_topics(group)
    if topics is None or key.topic in topics:
        return f"the group is {group.state.value}, and its topics are {topics}"
    return None
