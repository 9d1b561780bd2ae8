"""The groups of one core, of both protocols, by id. A group is of one protocol at a time."""

from __future__ import annotations

from quorumlog.records.coordinator.offsets import GroupMetadataKey
from quorumlog_broker.coordinator.group_turn import Turn
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.consumer.records import delete_group
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroups
from quorumlog_broker.coordinator.groups.offsets.table import OffsetTable


class Registry:
    """classic: those that have members, a record, or were asked for. values: the durable part of `classic`, as bytes of
    the log. max_groups: of both protocols."""

    def __init__(self, consumers: ConsumerGroups, max_groups: int) -> None:
        self.classic: dict[str, ClassicGroup] = {}
        self.values: dict[str, bytes] = {}
        self._max_groups = max_groups
        self.consumers = consumers
        self.offsets = OffsetTable()

    def ids(self) -> tuple[str, ...]:
        """Of groups that have members, a record or offsets."""
        return tuple(dict.fromkeys((*self.classic, *self.consumers.ids(), *self.offsets.groups())))

    def has_room_for(self, group_id: str) -> bool:
        """The group is there, or may be made. Behind a load, groups that have only offsets are not in `classic` yet."""
        if max(len(self.classic) + len(self.consumers), self.offsets.group_count) < self._max_groups:
            return True
        return group_id in self.consumers or self.known(group_id) is not None

    def replay_classic(self, key: GroupMetadataKey, value: bytes | None) -> None:
        if value is None:
            self.values.pop(key.group, None)
        else:
            self.values[key.group] = value

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        return self.consumers.get(group_id)

    def known(self, group_id: str) -> ClassicGroup | None:
        """A classic group that has members or a record, or only offsets: it is a simple one, and has no record."""
        if group_id in self.consumers:
            return None
        if group_id not in self.classic and group_id in self.offsets:
            return self.made(group_id)
        return self.classic.get(group_id)

    def made(self, group_id: str) -> ClassicGroup:
        """The classic group; a new one, which is not durable yet, if there is none."""
        group = self.classic.get(group_id)
        if group is None:
            group = self.classic[group_id] = ClassicGroup(group_id)
        return group

    def forget(self, turn: Turn, group_id: str) -> None:
        """Delete its records, and what lives here only. Nobody is in it."""
        consumers = self.consumers.get(group_id)
        if consumers is not None:
            delete_group(turn, consumers)
        if group_id in self.values:
            turn.delete(GroupMetadataKey(group_id))
        group = self.classic.pop(group_id, None)
        if group is not None:
            group.enter(State.DEAD, turn.wall_ms)
